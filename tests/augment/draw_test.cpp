// The random decisions: the generator's published answers, the word table of augment.h, and the distributions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "kernels/augment/augment.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

using test::usual_views;

constexpr PhiloxKey kKey = philox_key(42, RandomPurpose::kViews);

// Random123, kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The table of augment.h, read again word by word.
TEST(DrawView, ReadsTheDocumentedWords) {
  const ViewParams params = usual_views(32);
  for (uint32_t sample = 0; sample < 200; ++sample) {
    const ViewId id{.view = sample % 2, .sample = sample, .epoch = 7};
    const auto word = [&](uint32_t w) { return philox4x32({w / 4, id.view, id.sample, id.epoch}, kKey)[w % 4]; };
    const auto u = [&](uint32_t w) { return static_cast<float>(word(w) >> 8) / 16777216.0f; };
    const ViewDraw draw = draw_view(params, kKey, id, 40, 50);
    EXPECT_EQ(draw.flip, u(0) < 0.5f);
    EXPECT_EQ(draw.jitter, u(1) < 0.8f);
    EXPECT_FLOAT_EQ(draw.brightness, 0.6f + 0.8f * u(3));
    EXPECT_FLOAT_EQ(draw.contrast, 0.6f + 0.8f * u(4));
    EXPECT_FLOAT_EQ(draw.saturation, 0.6f + 0.8f * u(5));
    EXPECT_NEAR(draw.hue, -0.1f + 0.2f * u(6), 1e-7);
    EXPECT_EQ(draw.grayscale, u(7) < 0.2f);
    EXPECT_EQ(draw.blur, u(8) < 0.5f);
    EXPECT_FLOAT_EQ(draw.blur_sigma, 0.1f + 1.9f * u(9));

    std::array<int, 4> order = {0, 1, 2, 3};
    for (uint64_t k = (uint64_t{word(2)} * 24) >> 32; k > 0; --k) std::next_permutation(order.begin(), order.end());
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(static_cast<int>(draw.order[i]), order[i]);

    bool found = false;
    for (uint32_t t = 0; t < 10 && !found; ++t) {
      const double area = 40 * 50 * (0.2 + 0.8 * word(12 + 4 * t) / 4294967296.0);
      const double ratio =
          std::exp(std::log(0.75) + (std::log(4.0 / 3) - std::log(0.75)) * word(13 + 4 * t) / 4294967296.0);
      const auto w = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio)));
      const auto h = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
      if (w > 50 || h > 40) continue;
      found = true;
      EXPECT_EQ(draw.crop.height, h);
      EXPECT_EQ(draw.crop.width, w);
      EXPECT_EQ(draw.crop.top, static_cast<int64_t>((word(14 + 4 * t) * static_cast<uint64_t>(40 - h + 1)) >> 32));
      EXPECT_EQ(draw.crop.left, static_cast<int64_t>((word(15 + 4 * t) * static_cast<uint64_t>(50 - w + 1)) >> 32));
    }
    EXPECT_TRUE(found);
  }
}

TEST(DrawView, DiffersBetweenViewsSamplesEpochsAndSeeds) {
  const ViewParams params = usual_views(32);
  std::set<float> seen;
  for (const ViewId id : {ViewId{0, 0, 0}, ViewId{1, 0, 0}, ViewId{0, 1, 0}, ViewId{0, 0, 1}}) {
    for (const uint64_t seed : {1u, 2u}) {
      seen.insert(draw_view(params, philox_key(seed, RandomPurpose::kViews), id, 32, 32).brightness);
    }
  }
  EXPECT_EQ(seen.size(), 8u);
}

// 20,000 draws: a share p has standard deviation sqrt(p (1-p) / n) < 0.0036; bounds are five of them.
TEST(DrawView, FollowsTheStatedDistributions) {
  constexpr int kDraws = 20000;
  ViewParams params = usual_views(32);
  params.crop_ratio = {1, 1};
  std::map<std::array<JitterOp, 4>, int> orders;
  double flips = 0, jitters = 0, grays = 0, blurs = 0, brightness = 0, hue = 0, hue_squares = 0, sigma = 0, area = 0;
  std::array<int, 5> tops{};
  for (uint32_t i = 0; i < kDraws; ++i) {
    const ViewDraw draw = draw_view(params, kKey, {.view = 0, .sample = i, .epoch = 0}, 1000, 1000);
    flips += draw.flip;
    jitters += draw.jitter;
    grays += draw.grayscale;
    blurs += draw.blur;
    brightness += draw.brightness;
    hue += draw.hue;
    hue_squares += draw.hue * draw.hue;
    sigma += draw.blur_sigma;
    area += static_cast<double>(draw.crop.height * draw.crop.width) / 1e6;
    ++orders[draw.order];
    if (draw.crop.height < 1000) ++tops[5 * draw.crop.top / (1000 - draw.crop.height + 1)];
    EXPECT_EQ(draw.crop.height, draw.crop.width);
    EXPECT_LE(draw.crop.top + draw.crop.height, 1000);
  }
  EXPECT_NEAR(flips / kDraws, 0.5, 0.018);
  EXPECT_NEAR(jitters / kDraws, 0.8, 0.015);
  EXPECT_NEAR(grays / kDraws, 0.2, 0.015);
  EXPECT_NEAR(blurs / kDraws, 0.5, 0.018);
  EXPECT_NEAR(brightness / kDraws, 1.0, 0.01);                // sd 0.8 / sqrt(12 n) = 0.0016
  EXPECT_NEAR(hue / kDraws, 0.0, 0.0025);                     // sd 0.0004
  EXPECT_NEAR(hue_squares / kDraws, 0.2 * 0.2 / 12, 0.0002);  // variance of a uniform draw
  EXPECT_NEAR(sigma / kDraws, 1.05, 0.02);
  EXPECT_NEAR(area / kDraws, 0.6, 0.01);  // sd 0.8 / sqrt(12 n) = 0.0016
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kDraws / 24.0, 150);  // sd 28
  for (const int count : tops) EXPECT_NEAR(count, kDraws / 5.0, 300);                // sd 57
}

TEST(DrawView, DrawsTheRatioOnALogScale) {
  ViewParams params = usual_views(32);
  params.crop_scale = {0.1, 0.1};
  params.crop_ratio = {0.5, 2.0};
  double sum = 0, low = 1e9, high = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    const CropBox box = draw_view(params, kKey, {0, i, 0}, 1000, 1000).crop;
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    sum += std::log(ratio);
    low = std::min(low, ratio);
    high = std::max(high, ratio);
  }
  EXPECT_NEAR(sum / 4000, 0.0, 0.03);  // sd 2 log 2 / sqrt(12 n) = 0.006; a uniform ratio would have mean 0.17
  EXPECT_NEAR(low, 0.5, 0.01);
  EXPECT_NEAR(high, 2.0, 0.02);
}

TEST(DrawView, ProbabilityOneIsAlwaysAndZeroNever) {
  ViewParams params = usual_views(32);
  params.flip_probability = 1;
  params.grayscale_probability = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const ViewDraw draw = draw_view(params, kKey, {0, i, 0}, 32, 32);
    EXPECT_TRUE(draw.flip);
    EXPECT_FALSE(draw.grayscale);
  }
}

// torchvision RandomResizedCrop.get_params: when no try fits, the largest centered box of an allowed ratio.
TEST(DrawView, FallsBackToACenteredCrop) {
  ViewParams params = usual_views(32);
  params.crop_scale = {1, 1};
  EXPECT_EQ(draw_view(params, kKey, {}, 100, 20).crop,
            (CropBox{.top = 36, .left = 0, .height = 27, .width = 20}));  // 20 / 0.75
  EXPECT_EQ(draw_view(params, kKey, {}, 20, 100).crop,
            (CropBox{.top = 0, .left = 36, .height = 20, .width = 27}));  // 20 * 4/3
  EXPECT_EQ(draw_view(params, kKey, {}, 1, 1).crop, (CropBox{.top = 0, .left = 0, .height = 1, .width = 1}));
  params.crop_ratio = {3, 4};  // 1 / 3 rounds to 0 rows: at least one is taken
  EXPECT_EQ(draw_view(params, kKey, {}, 9, 1).crop, (CropBox{.top = 4, .left = 0, .height = 1, .width = 1}));
  params.crop_ratio = {1.5, 2};
  params.crop_scale = {0.95, 0.95};  // square image, wider boxes: every try is too wide; 10 / 1.5 = 6.67 rows
  EXPECT_EQ(draw_view(params, kKey, {}, 10, 10).crop, (CropBox{.top = 1, .left = 0, .height = 7, .width = 10}));
}

}  // namespace
}  // namespace simclr
