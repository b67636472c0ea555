// Crop, resize and blur: by hand, identities, and direct double evaluations of the definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

using namespace simclr::test;

std::vector<float> crop_only(const TestImage& image, const CropBox& crop, bool flip, int64_t size) {
  return render(image, {.crop = crop, .flip = flip}, {.size = size});
}

TEST(ResizedCrop, WholeImageOfTheSameSizeIsTheIdentity) {
  const TestImage image = noise_image(32, 32, 1);
  const std::vector<float> out = crop_only(image, whole(image), false, 32);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_FLOAT_EQ(out[i], static_cast<float>(image.pixels[i]) / 255);
}

TEST(ResizedCrop, TwoByTwoByHand) {
  TestImage image{2, 2, {0, 255, 102, 51, 0, 0, 0, 0, 255, 255, 255, 255}};
  const std::vector<float> one = crop_only(image, whole(image), false, 1);  // all four pixels weigh the same
  EXPECT_FLOAT_EQ(one[0], (0 + 255 + 102 + 51) / 4.0f / 255);
  EXPECT_FLOAT_EQ(one[1], 0);
  EXPECT_FLOAT_EQ(one[2], 1);
  // To 4x4, outputs lie at -0.25, 0.25, 0.75, 1.25 of the inputs' centers: weights 1, 3/4, 1/4, 0 of the first input.
  const std::vector<float> grown = crop_only(image, whole(image), false, 4);
  const float first_row[4] = {0, 0.25f, 0.75f, 1};
  for (size_t x = 0; x < 4; ++x) EXPECT_NEAR(grown[x], first_row[x], 1e-6);
  EXPECT_NEAR(grown[4], 0.25f * 0.4f, 1e-6);  // 3/4 of 0 and 1/4 of 102 / 255
  EXPECT_NEAR(grown[12], 0.4f, 1e-6);
}

TEST(ResizedCrop, FlipMirrorsEveryBit) {
  const TestImage image = noise_image(37, 29, 2);
  const CropBox crop{.top = 3, .left = 5, .height = 30, .width = 21};
  const std::vector<float> straight = crop_only(image, crop, false, 17), mirrored = crop_only(image, crop, true, 17);
  for (size_t row = 0; row < 3 * 17; ++row) {
    for (size_t x = 0; x < 17; ++x) ASSERT_EQ(straight[row * 17 + x], mirrored[row * 17 + 16 - x]);
  }
}

TEST(ResizedCrop, AConstantImageStaysConstant) {
  const TestImage image = constant_image(50, 70, 255, 51, 0);
  for (const int64_t size : {1, 5, 32, 90}) {
    const std::vector<float> out = crop_only(image, {.top = 7, .left = 11, .height = 41, .width = 23}, false, size);
    const auto pixels = static_cast<size_t>(size * size);
    for (size_t i = 0; i < pixels; ++i) {
      ASSERT_NEAR(out[i], 1.0f, 1e-6);
      ASSERT_NEAR(out[pixels + i], 0.2f, 1e-6);
      ASSERT_EQ(out[2 * pixels + i], 0.0f);
    }
  }
}

// Sizes around the vector width, shrinking, growing, both, one pixel; crops at every corner. The triangle filter is
// evaluated for every pair of an input and an output.
TEST(ResizedCrop, MatchesTheDirectSumOfTheTriangleFilter) {
  struct Case {
    int64_t height, width, size;
    CropBox crop;
  };
  const Case cases[] = {
      {1, 1, 8, {0, 0, 1, 1}},          {1, 9, 4, {0, 2, 1, 5}},           {33, 31, 32, {0, 0, 33, 31}},
      {32, 32, 32, {9, 15, 23, 17}},    {32, 32, 32, {0, 16, 15, 16}},     {96, 40, 32, {50, 3, 46, 37}},
      {224, 224, 32, {0, 0, 224, 224}}, {224, 224, 31, {100, 40, 1, 184}}, {20, 64, 33, {1, 47, 19, 17}}};
  const auto triangle = [](int64_t q, int64_t i, int64_t extent, int64_t size) {
    const double step = static_cast<double>(extent) / static_cast<double>(size), support = std::max(1.0, step);
    return std::max(0.0,
                    1 - std::abs((static_cast<double>(q) + 0.5) - (static_cast<double>(i) + 0.5) * step) / support);
  };
  for (const Case& k : cases) {
    const TestImage image = noise_image(k.height, k.width, 3);
    const std::vector<float> out = crop_only(image, k.crop, false, k.size);
    for (int64_t i = 0; i < 3 * k.size * k.size; ++i) {
      const int64_t c = i / (k.size * k.size), y = i / k.size % k.size, x = i % k.size;
      double sum = 0, weights = 0;
      for (int64_t v = 0; v < k.crop.height; ++v) {
        const double row_weight = triangle(v, y, k.crop.height, k.size);
        for (int64_t u = 0; row_weight > 0 && u < k.crop.width; ++u) {
          const double w = row_weight * triangle(u, x, k.crop.width, k.size);
          sum += w * image.view().row(c, k.crop.top + v)[k.crop.left + u];
          weights += w;
        }
      }
      ASSERT_NEAR(out[i], sum / weights / 255, 1e-6) << k.height << "x" << k.width << " to " << k.size << " at " << i;
    }
  }
}

TEST(Blur, MatchesTheDirectConvolution) {
  for (const auto& [size, taps] : {std::pair<int64_t, int64_t>{2, 3}, {6, 3}, {31, 5}, {32, 3}, {48, 23}}) {
    for (const float sigma : {0.1f, 0.8f, 2.0f}) {
      const TestImage image = noise_image(size, size, 4);
      const ViewParams params{.size = size, .blur_probability = 1, .blur_taps = taps};
      const std::vector<float> out = render(image, {.crop = whole(image), .blur = true, .blur_sigma = sigma}, params);
      const auto mirror = [n = size](int64_t i) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
      for (int64_t i = 0; i < 3 * size * size; ++i) {
        const int64_t c = i / (size * size), y = i / size % size, x = i % size, half = taps / 2;
        double sum = 0, weights = 0;
        for (int64_t v = -half; v <= half; ++v) {
          for (int64_t u = -half; u <= half; ++u) {
            const double w = std::exp(-static_cast<double>(u * u + v * v) / (2.0 * sigma * sigma));
            sum += w * image.view().row(c, mirror(y + v))[mirror(x + u)];
            weights += w;
          }
        }
        ASSERT_NEAR(out[i], sum / weights / 255, 1e-6) << size << ", " << taps << " taps, sigma " << sigma;
      }
    }
  }
}

TEST(Blur, KeepsAConstantImage) {
  std::vector<float> x(3 * 32 * 32, 0.7f), scratch(static_cast<size_t>(blur_scratch_bytes(32, 5)) / 4);
  gaussian_blur(x.data(), 32, 5, 1.3f, std::as_writable_bytes(std::span(scratch)).data());
  for (const float v : x) ASSERT_NEAR(v, 0.7f, 1e-6);
}

TEST(Blur, KernelIsATenthOfTheSide) {
  EXPECT_EQ(blur_taps_for(8), 3);
  EXPECT_EQ(blur_taps_for(32), 3);
  EXPECT_EQ(blur_taps_for(96), 9);
  EXPECT_EQ(blur_taps_for(224), 23);  // as in SimCLR
}

}  // namespace
}  // namespace simclr
