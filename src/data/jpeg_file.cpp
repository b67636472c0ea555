// JPEG by libjpeg-turbo. The library reports errors through a function that must not return: it leaves by longjmp, only
// across frames of C and of lambdas whose objects have no destructors (anything else would be undefined).
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "src/data/exif.h"
#include "src/data/image_codecs.h"
#include "src/data/upright_rows.h"

namespace simclr {
namespace {

constexpr int kMostScans = 100;
constexpr std::array<uint8_t, 6> kExifStart = {'E', 'x', 'i', 'f', 0, 0};

// One decompressor and where its errors go.
class JpegReader {
 public:
  explicit JpegReader(std::span<const uint8_t> file) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr common) { self(common).leave(); };
    errors_.emit_message = [](j_common_ptr common, int level) {
      // -1: a warning. Missing pixels are an error; other damage is left to the library to fill in.
      if (level == -1 && common->err->msg_code == JWRN_JPEG_EOF) self(common).leave();
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr common) {
      JpegReader& reader = self(common);
      if (reader.jpeg_.input_scan_number > kMostScans) reader.leave("it has more than 100 scans");
    };
    jpeg_.client_data = this;  // kept by jpeg_create_decompress
    try {
      guard([&] {
        jpeg_create_decompress(&jpeg_);
        jpeg_.progress = &progress_;
        jpeg_mem_src(&jpeg_, file.data(), file.size());
        jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xffff);
        jpeg_read_header(&jpeg_, TRUE);
      });
    } catch (...) {
      jpeg_destroy_decompress(&jpeg_);
      throw;
    }
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  jpeg_decompress_struct& jpeg() { return jpeg_; }

  // Calls of the library. Nothing with a destructor may live in `calls`. BadImage if the library gave up.
  template <typename Calls>
  void guard(const Calls& calls) {
    if (!returns(calls)) throw BadImage(fmt::format("libjpeg cannot read it: {}", message_.data()));
  }

 private:
  template <typename Calls>
  bool returns(const Calls& calls) {
    if (setjmp(jump_) != 0) return false;
    calls();
    return true;
  }
  static JpegReader& self(j_common_ptr common) { return *static_cast<JpegReader*>(common->client_data); }
  [[noreturn]] void leave() {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&jpeg_), message_.data());
    std::longjmp(jump_, 1);
  }
  [[noreturn]] void leave(const char* reason) {
    std::strncpy(message_.data(), reason, message_.size() - 1);
    std::longjmp(jump_, 1);
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
};

// From the first EXIF block; there may be others, and APP1 markers with other contents.
int orientation_of(const jpeg_decompress_struct& jpeg) {
  for (const jpeg_marker_struct* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::span<const uint8_t> data(marker->data, marker->data_length);
    if (marker->marker != JPEG_APP0 + 1 || data.size() < kExifStart.size() ||
        !std::equal(kExifStart.begin(), kExifStart.end(), data.begin()))
      continue;
    return exif_orientation(data.subspan(kExifStart.size()));
  }
  return 1;
}

// One row of CMYK becomes RGB, in place. Adobe's programs store the values inverted.
void cmyk_to_rgb(uint8_t* row, int64_t width, bool inverted) {
  const uint8_t flip = inverted ? 0 : 255;
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* from = row + 4 * x;
    const int light = from[3] ^ flip;
    uint8_t* to = row + 3 * x;
    for (int64_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(((from[c] ^ flip) * light + 127) / 255);
  }
}

}  // namespace

ImageInfo read_jpeg_info(std::span<const uint8_t> file) {
  JpegReader reader(file);
  const jpeg_decompress_struct& jpeg = reader.jpeg();
  if (jpeg.num_components != 1 && jpeg.num_components != 3 && jpeg.num_components != 4)
    throw BadImage(fmt::format("it has {} channels; 1, 3 and 4 can be read", jpeg.num_components));
  ImageInfo info{.kind = ImageKind::kJpeg,
                 .height = jpeg.image_height,
                 .width = jpeg.image_width,
                 .orientation = orientation_of(jpeg)};
  if (info.orientation >= 5) std::swap(info.height, info.width);
  return info;
}

PlanarImage decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                        std::vector<uint8_t>& storage) {
  JpegReader reader(file);
  jpeg_decompress_struct& jpeg = reader.jpeg();
  reader.guard([&] {
    jpeg.scale_num = 1;
    jpeg.scale_denom = static_cast<unsigned>(reduction);
    jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg);
  });
  const int64_t height = jpeg.output_height, width = jpeg.output_width, channels = jpeg.output_components;
  UprightRows rows(height, width, info.orientation, storage);
  std::vector<uint8_t> buffer(width * channels);
  uint8_t* const row = buffer.data();
  reader.guard([&] {
    while (jpeg.output_scanline < jpeg.output_height) {
      const int64_t y = jpeg.output_scanline;
      JSAMPROW target = row;
      jpeg_read_scanlines(&jpeg, &target, 1);
      if (channels == 4) cmyk_to_rgb(row, width, jpeg.saw_Adobe_marker != 0);
      rows.put(y, row, channels == 1 ? 1 : 3);
    }
  });
  return rows.view();  // bytes after the last row are ignored
}

}  // namespace simclr
