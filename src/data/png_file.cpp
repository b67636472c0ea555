// PNG by libpng. As with JPEG (jpeg_file.cpp), errors leave by longjmp, only across frames without destructors.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "src/data/exif.h"
#include "src/data/image_codecs.h"
#include "src/data/upright_rows.h"

namespace simclr {
namespace {

constexpr png_uint_32 kMostPixelsASide = 0x7fffffff;  // the format's own limit; max_pixels is the one that counts
constexpr png_alloc_size_t kMostChunkBytes = size_t{8} << 20;  // for texts and profiles, which are ignored

// libpng allocates some chunks before it reads them: no chunk before the pixels may be longer than the file.
void check_chunk_lengths(std::span<const uint8_t> file) {
  constexpr size_t kSignatureBytes = 8, kHeadBytes = 8, kSumBytes = 4;  // length and type; checksum
  for (size_t at = kSignatureBytes; at + kHeadBytes <= file.size();) {
    const size_t length = png_get_uint_32(file.data() + at);
    if (std::memcmp(file.data() + at + 4, "IDAT", 4) == 0) return;
    if (length > file.size() - at - kHeadBytes) throw BadImage("libpng cannot read it: the file ends early");
    at += kHeadBytes + length + kSumBytes;
  }
}

class PngReader {
 public:
  explicit PngReader(std::span<const uint8_t> file) : left_(file) {
    check_chunk_lengths(file);
    const auto on_error = [](png_structp png, png_const_charp message) {
      PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
      std::strncpy(reader.message_.data(), message, reader.message_.size() - 1);
      std::longjmp(reader.jump_, 1);
    };
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    try {
      guard([&] {
        png_set_user_limits(png_, kMostPixelsASide, kMostPixelsASide);
        png_set_chunk_malloc_max(png_, kMostChunkBytes);
        png_set_read_fn(png_, this, [](png_structp png, png_bytep to, size_t bytes) {
          PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
          if (bytes > reader.left_.size()) png_error(png, "the file ends early");
          std::memcpy(to, reader.left_.data(), bytes);
          reader.left_ = reader.left_.subspan(bytes);
        });
        png_read_info(png_, info_);
      });
    } catch (...) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw;
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png() { return png_; }
  png_infop info() { return info_; }

  // Calls of the library. Nothing with a destructor may live in `calls`. BadImage if the library gave up.
  template <typename Calls>
  void guard(const Calls& calls) {
    if (!returns(calls)) throw BadImage(fmt::format("libpng cannot read it: {}", message_.data()));
  }

 private:
  template <typename Calls>
  bool returns(const Calls& calls) {
    if (setjmp(jump_) != 0) return false;
    calls();
    return true;
  }

  std::span<const uint8_t> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  std::array<char, 200> message_{};
};

int orientation_of(png_structp png, png_infop info) {
  png_bytep exif = nullptr;
  png_uint_32 bytes = 0;
  if (png_get_eXIf_1(png, info, &bytes, &exif) == 0 || exif == nullptr) return 1;
  return exif_orientation({exif, bytes});
}

}  // namespace

ImageInfo read_png_info(std::span<const uint8_t> file) {
  PngReader reader(file);
  ImageInfo info{.kind = ImageKind::kPng};
  reader.guard([&] {
    info.height = png_get_image_height(reader.png(), reader.info());
    info.width = png_get_image_width(reader.png(), reader.info());
    info.orientation = orientation_of(reader.png(), reader.info());
  });
  if (info.orientation >= 5) std::swap(info.height, info.width);
  return info;
}

PlanarImage decode_png(std::span<const uint8_t> file, const ImageInfo& info, std::vector<uint8_t>& storage) {
  PngReader reader(file);
  png_structp png = reader.png();
  int passes = 1;
  int64_t height = 0, width = 0, channels = 0, row_bytes = 0;
  reader.guard([&] {
    if (png_get_color_type(png, reader.info()) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (png_get_bit_depth(png, reader.info()) < 8) png_set_expand_gray_1_2_4_to_8(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, reader.info());
    height = png_get_image_height(png, reader.info());
    width = png_get_image_width(png, reader.info());
    channels = png_get_channels(png, reader.info());
    row_bytes = png_get_rowbytes(png, reader.info());
  });
  SIMCLR_CHECK((channels == 1 || channels == 3) && row_bytes == width * channels, "{} channels, {} bytes a row of {}",
               channels, row_bytes, width);
  UprightRows rows(height, width, info.orientation, storage);
  const int64_t kept_rows = passes == 1 ? 1 : height;  // an interlaced image's rows are complete after the last pass
  std::vector<uint8_t> buffer(kept_rows * row_bytes);
  uint8_t* const first = buffer.data();
  reader.guard([&] {
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t y = 0; y < height; ++y) {
        uint8_t* const row = first + (passes == 1 ? 0 : y * row_bytes);
        png_read_row(png, row, nullptr);
        if (pass == passes - 1) rows.put(y, row, channels);
      }
    }
  });
  return rows.view();  // bytes after the last row are ignored
}

}  // namespace simclr
