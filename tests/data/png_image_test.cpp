// Images as PNG, read back by libpng.
#include "src/data/png_image.h"

#include <gtest/gtest.h>
#include <png.h>

namespace simclr {
namespace {

TEST(PngImage, ComesBackPixelByPixel) {
  RgbImage image(3, 5, 0);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37);
  const std::string png = encode_png(image);
  EXPECT_EQ(png, encode_png(image));
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&header, png.data(), png.size()), 0);
  EXPECT_EQ(header.width, 5U);
  EXPECT_EQ(header.height, 3U);
  header.format = PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(header));
  ASSERT_NE(png_image_finish_read(&header, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(pixels, image.pixels);
}

}  // namespace
}  // namespace simclr
