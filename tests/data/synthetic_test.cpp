// The embedded data set: hard enough for raw pixels, learnable by shape, the same for everybody.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/error.h"
#include "src/data/dataset.h"
#include "src/data/synthetic.h"
#include "tests/data/pixel_knn.h"

namespace simclr {
namespace {

using test::pixel_knn_accuracy;

constexpr int64_t kPixels = 32 * 32;

TEST(Synthetic, HasTheStatedSizesAndLabels) {
  const ImageSet set = draw_synthetic({.train_images = 40, .test_images = 16}, Split::kTrain);
  EXPECT_EQ(set.count, 40);
  EXPECT_EQ(set.pixels.size(), 40u * 3 * kPixels);
  EXPECT_EQ(set.class_names.size(), 8u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(set.labels[i], static_cast<int32_t>(i % 8));
  EXPECT_EQ(draw_synthetic({.train_images = 40, .test_images = 16}, Split::kTest).count, 16);
}

TEST(Synthetic, AnImageDoesNotDependOnHowManyThereAre) {
  const ImageSet few = draw_synthetic({.train_images = 11, .test_images = 1}, Split::kTrain);
  const ImageSet many = draw_synthetic({.train_images = 30, .test_images = 1}, Split::kTrain);
  EXPECT_TRUE(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
}

TEST(Synthetic, TheSplitsShareNoImage) {
  const ImageSet train = draw_synthetic({.train_images = 64, .test_images = 64}, Split::kTrain);
  const ImageSet test = draw_synthetic({.train_images = 64, .test_images = 64}, Split::kTest);
  for (int64_t i = 0; i < 64; ++i) {
    for (int64_t j = 0; j < 64; ++j) {
      const auto a = train.pixels.begin() + i * 3 * kPixels, b = test.pixels.begin() + j * 3 * kPixels;
      ASSERT_FALSE(std::equal(a, a + 3 * kPixels, b));
    }
  }
}

TEST(Synthetic, RefusesNoImages) {
  EXPECT_THROW(draw_synthetic({.train_images = 0, .test_images = 1}, Split::kTrain), Error);
}

// Pixels brighter than the background (at most 0.18 + 0.09 + 0.03 + noise) belong to a shape, whose colors have luma
// >= 0.6. Their share follows from the areas of 3 to 5 copies of radius 4.5..7.5; a disc covers 0.82^2 pi r^2,
// bars 2.24 r^2.
TEST(Synthetic, DrawsBrightShapesOnADarkGround) {
  const ImageSet set = draw_synthetic({.train_images = 800, .test_images = 1}, Split::kTrain);
  std::vector<double> share(8);
  for (int64_t i = 0; i < 800; ++i) {
    const uint8_t* p = set.pixels.data() + i * 3 * kPixels;
    int64_t bright = 0;
    for (int64_t k = 0; k < kPixels; ++k)
      bright += 0.299 * p[k] + 0.587 * p[kPixels + k] + 0.114 * p[2 * kPixels + k] > 0.45 * 255;
    share[i % 8] += static_cast<double>(bright) / kPixels / 100;
  }
  for (const double s : share) {
    EXPECT_GT(s, 0.08);
    EXPECT_LT(s, 0.40);
  }
  EXPECT_NEAR(share[1] / share[2], 2.19 / 1.63,
              0.15);  // areas of a square (1.48 r)^2 and a triangle 3 sqrt(3) (0.56 r)^2
  EXPECT_NEAR(share[0] / share[2], 2.11 / 1.63, 0.15);  // a disc pi (0.82 r)^2
}

// The set is designed to be about this hard for raw pixels (0.320 as drawn here; chance is 0.125).
TEST(Synthetic, RawPixelNeighborsReachAThird) {
  const ImageSet train = draw_synthetic({}, Split::kTrain), test = draw_synthetic({}, Split::kTest);
  const double accuracy = pixel_knn_accuracy(train, test, 20);
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.26);
  EXPECT_LT(accuracy, 0.38);
}

}  // namespace
}  // namespace simclr
