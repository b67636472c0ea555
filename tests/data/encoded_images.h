// Images for tests, written by libjpeg and libpng themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace simclr::test {

using Bytes = std::vector<uint8_t>;

// Interleaved values of an image to be encoded.
struct RawImage {
  int64_t height = 0, width = 0, channels = 0;
  Bytes values;  // [height, width, channels]
};

// Upper left quarter red, the rest blue: one color per 16x16 block of 48x32.
RawImage red_corner(int64_t height = 32, int64_t width = 48);
RawImage filled(int64_t height, int64_t width, const Bytes& pixel);
// Smooth, different in each channel.
RawImage gradient(int64_t height, int64_t width, int64_t channels = 3);

struct JpegOptions {
  bool progressive = false, adobe_ycck = false;  // the second for 4 channels: values are CMYK, inverted
  int orientation = 0;                           // 0: no EXIF
  int scans_of_one_kind = 0;                     // > 0: a progressive gray image with this number of refining scans
};
Bytes encode_jpeg(const RawImage& image, const JpegOptions& options = {});

struct PngOptions {
  int bit_depth = 8;  // 16: each value v becomes v * 257
  bool interlaced = false;
  bool palette = false;  // values are indices, one channel; the palette is {255 - i, i, 7}
  int orientation = 0;
};
Bytes encode_png(const RawImage& image, const PngOptions& options = {});

void write_file(const std::string& path, const Bytes& bytes);
Bytes read_bytes(const std::string& path);

}  // namespace simclr::test
