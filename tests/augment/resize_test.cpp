// Images resized once for packed files: by hand, the identity, and against the resampler of views.
#include "kernels/augment/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

using namespace simclr::test;

std::vector<uint8_t> resized(const TestImage& image, int64_t height, int64_t width) {
  std::vector<uint8_t> out(3 * height * width);
  resize_image(image.view(), height, width, out.data());
  return out;
}

TEST(ResizeImage, ByHand) {
  const TestImage image{2, 2, {0, 255, 102, 51, 0, 0, 0, 1, 255, 255, 255, 254}};
  EXPECT_EQ(resized(image, 1, 1), (std::vector<uint8_t>{102, 0, 255}));  // means 102, 0.25, 254.75
  const TestImage column{4, 1, {0, 0, 200, 100, 7, 7, 7, 7, 0, 0, 0, 255}};
  // Two outputs of support 2 around 1 and 3: weights 3, 3, 1, 0 and 0, 1, 3, 3 of 7 (a fourth tap lies outside).
  EXPECT_EQ(resized(column, 2, 1), (std::vector<uint8_t>{29, 129, 7, 7, 0, 109}));
}

TEST(ResizeImage, TheSameSizeIsTheIdentity) {
  const TestImage image = noise_image(9, 21, 3);
  EXPECT_EQ(resized(image, 9, 21), image.pixels);
}

TEST(ResizeImage, AgreesWithTheResamplerOfViews) {
  const TestImage image = noise_image(61, 45, 4);
  const std::vector<uint8_t> out = resized(image, 20, 20);
  std::vector<std::byte> scratch(resized_crop_scratch_bytes(61, 45, 20));
  std::vector<float> expected(3 * 20 * 20);
  resized_crop(image.view(), {0, 0, 61, 45}, false, 20, scratch.data(), expected.data());
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], 255 * expected[i], 0.501);
}

}  // namespace
}  // namespace simclr
