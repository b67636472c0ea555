// An image in memory as the bytes of a PNG file, by libpng. The same image gives the same bytes with one version of
// libpng and zlib: no time stamp, no text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simclr {

// RGB, 8 bits, interleaved [height, width, 3].
struct RgbImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  RgbImage() = default;
  RgbImage(int64_t rows, int64_t columns, uint8_t value)
      : height(rows), width(columns), pixels(rows * columns * 3, value) {}
  uint8_t* at(int64_t y, int64_t x) { return pixels.data() + (y * width + x) * 3; }
  const uint8_t* at(int64_t y, int64_t x) const { return pixels.data() + (y * width + x) * 3; }
};

// Throws Error(kOther) with libpng's reason, such as sides above 10^6 pixels.
std::string encode_png(const RgbImage& image);

}  // namespace simclr
