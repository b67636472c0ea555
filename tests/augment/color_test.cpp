// Color steps one at a time: numbers small enough to check by hand, identities, and a textbook HSV of the test's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

std::vector<float> noise(int64_t pixels, uint32_t seed = 5) {
  PhiloxStream stream({seed, 3}, 0, 0, 0);
  std::vector<float> x(3 * pixels);
  for (float& v : x) v = stream.uniform();
  return x;
}

void expect_near(const std::vector<float>& x, const std::vector<float>& y, float tolerance) {
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "element " << i;
}

// [3, 2 pixels]: a green-ish and a dark pixel; gray = 0.2989 * 0.2 + 0.587 * 0.6 + 0.114 * 0.4 = 0.45758 and 0.09999.
const std::vector<float> kTwo = {0.2f, 0.1f, 0.6f, 0.1f, 0.4f, 0.1f};

TEST(Color, BrightnessByHand) {
  std::vector<float> x = kTwo;
  adjust_brightness(x.data(), 2, 2);
  expect_near(x, {0.4f, 0.2f, 1.0f, 0.2f, 0.8f, 0.2f}, 1e-7f);
}

TEST(Color, ContrastByHand) {  // mean gray 0.278785
  std::vector<float> x = kTwo;
  adjust_contrast(x.data(), 2, 0.5f);
  expect_near(x, {0.2393925f, 0.1893925f, 0.4393925f, 0.1893925f, 0.3393925f, 0.1893925f}, 1e-6f);
  x = kTwo;
  adjust_contrast(x.data(), 2, 2);
  expect_near(x, {0.121215f, 0, 0.921215f, 0, 0.521215f, 0}, 1e-6f);
}

TEST(Color, SaturationByHand) {
  std::vector<float> x = kTwo;
  adjust_saturation(x.data(), 2, 0.5f);
  expect_near(x, {0.32879f, 0.099995f, 0.52879f, 0.099995f, 0.42879f, 0.099995f}, 1e-6f);
  x = kTwo;
  adjust_saturation(x.data(), 2, 3);
  expect_near(x, {0, 0.10002f, 0.88484f, 0.10002f, 0.28484f, 0.10002f}, 1e-6f);
}

TEST(Color, GrayscaleByHand) {
  std::vector<float> x = kTwo;
  to_grayscale(x.data(), 2);
  expect_near(x, {0.45758f, 0.09999f, 0.45758f, 0.09999f, 0.45758f, 0.09999f}, 1e-6f);
  const std::vector<float> once = x;
  to_grayscale(x.data(), 2);  // the weights sum to 0.9999: gray of gray loses a ten-thousandth, as in torchvision
  expect_near(x,
              {0.9999f * once[0], 0.9999f * once[1], 0.9999f * once[2], 0.9999f * once[3], 0.9999f * once[4],
               0.9999f * once[5]},
              1e-6f);
}

TEST(Color, HueByHand) {  // pure red by a third of the circle is green, by a sixth is yellow; gray does not move
  std::vector<float> x = {1, 0.5f, 0, 0.5f, 0, 0.5f};
  adjust_hue(x.data(), 2, 1.0f / 3);
  expect_near(x, {0, 0.5f, 1, 0.5f, 0, 0.5f}, 1e-6f);
  x = {1, 0.5f, 0, 0.5f, 0, 0.5f};
  adjust_hue(x.data(), 2, 1.0f / 6);
  expect_near(x, {1, 0.5f, 1, 0.5f, 0, 0.5f}, 1e-6f);
  x = {1, 0.5f, 0, 0.5f, 0, 0.5f};
  adjust_hue(x.data(), 2, -1.0f / 3);
  expect_near(x, {0, 0.5f, 0, 0.5f, 1, 0.5f}, 1e-6f);
}

TEST(Color, NeutralFactorsKeepEveryBit) {
  const std::vector<float> before = noise(1000);
  std::vector<float> x = before;
  adjust_brightness(x.data(), 1000, 1);
  adjust_contrast(x.data(), 1000, 1);
  adjust_saturation(x.data(), 1000, 1);
  EXPECT_EQ(x, before);
}

TEST(Color, AWholeTurnOfHueIsNone) {
  const std::vector<float> before = noise(1000);
  for (const float turn : {0.0f, 1.0f, -1.0f}) {
    std::vector<float> x = before;
    adjust_hue(x.data(), 1000, turn);
    expect_near(x, before, 1e-6f);  // h goes up to 11: its last bit is 1e-6
  }
  std::vector<float> x = before;  // there and back
  adjust_hue(x.data(), 1000, 0.1f);
  adjust_hue(x.data(), 1000, -0.1f);
  expect_near(x, before, 2e-6f);
}

// Foley et al., Computer Graphics, 13.3.4: RGB -> HSV (h in degrees) -> RGB.
TEST(Color, HueIsATurnOfTheHsvCircle) {
  constexpr int64_t kPixels = 1000;
  const std::vector<float> before = noise(kPixels);
  for (const float turn : {-0.5f, -0.1f, 0.03f, 0.25f, 0.5f}) {
    std::vector<float> x = before;
    adjust_hue(x.data(), kPixels, turn);
    for (size_t i = 0; i < kPixels; ++i) {
      const double r = before[i], g = before[kPixels + i], b = before[2 * kPixels + i];
      const double v = std::max({r, g, b}), low = std::min({r, g, b}), s = (v - low) / v;
      double degrees = r == v   ? 60 * (g - b) / (v - low)
                       : g == v ? 120 + 60 * (b - r) / (v - low)
                                : 240 + 60 * (r - g) / (v - low);
      degrees = std::fmod(degrees + 360.0 * turn + 720, 360.0);
      const int sextant = static_cast<int>(degrees / 60);
      const double f = degrees / 60 - sextant, p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
      const double rgb[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
      for (size_t c = 0; c < 3; ++c) ASSERT_NEAR(x[c * kPixels + i], rgb[sextant % 6][c], 3e-6) << "turn " << turn;
    }
  }
}

TEST(Color, TheMeanOfContrastHoldsForAnyPixelCount) {  // lanes, blocks, and what is left over
  for (const int64_t pixels : {1, 7, 15, 16, 17, 255, 256, 257, 300, 1024}) {
    const std::vector<float> before = noise(pixels);
    const auto n = static_cast<size_t>(pixels);
    double mean = 0;
    for (size_t i = 0; i < n; ++i) mean += 0.2989 * before[i] + 0.587 * before[n + i] + 0.114 * before[2 * n + i];
    mean /= static_cast<double>(pixels);
    std::vector<float> x = before;
    adjust_contrast(x.data(), pixels, 0);
    for (const float v : x) ASSERT_NEAR(v, mean, 1e-6) << pixels << " pixels";
  }
}

TEST(Color, NormalizesPerChannel) {
  std::vector<float> x = {0.5f, 1, 0.5f, 1, 0.5f, 1};
  normalize(x.data(), 2, {0.5f, 0.25f, 0}, {2, 4, 1});
  expect_near(x, {0, 1, 1, 3, 0.5f, 1}, 0);
}

}  // namespace
}  // namespace simclr
