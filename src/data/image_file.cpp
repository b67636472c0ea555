// Detects the format and enforces the pixel limit.
#include "src/data/image_file.h"

#include <algorithm>
#include <array>

#include "src/data/image_codecs.h"

namespace simclr {
namespace {

constexpr std::array<uint8_t, 3> kJpegStart = {0xff, 0xd8, 0xff};
constexpr std::array<uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

template <size_t n>
bool starts_with(std::span<const uint8_t> file, const std::array<uint8_t, n>& start) {
  return file.size() >= n && std::equal(start.begin(), start.end(), file.begin());
}

ImageKind kind_of(std::span<const uint8_t> file) {
  if (file.empty()) throw BadImage("the file is empty");
  if (starts_with(file, kJpegStart)) return ImageKind::kJpeg;
  if (starts_with(file, kPngStart)) return ImageKind::kPng;
  throw BadImage("it is neither JPEG nor PNG by its first bytes");
}

}  // namespace

ImageInfo read_image_info(std::span<const uint8_t> file, int64_t max_pixels) {
  const ImageInfo info = kind_of(file) == ImageKind::kJpeg ? read_jpeg_info(file) : read_png_info(file);
  if (info.height > max_pixels / info.width) {
    throw BadImage(fmt::format("{}x{} pixels exceed data.max_pixels: {}", info.width, info.height, max_pixels));
  }
  return info;
}

PlanarImage decode_image(std::span<const uint8_t> file, const ImageInfo& info, int reduction,
                         std::vector<uint8_t>& storage) {
  SIMCLR_CHECK(reduction == 1 || reduction == 2 || reduction == 4 || reduction == 8, "reduction {}", reduction);
  return info.kind == ImageKind::kJpeg ? decode_jpeg(file, info, reduction, storage) : decode_png(file, info, storage);
}

}  // namespace simclr
