// What people are shown is what training sees.
#include "src/report/images.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/augment/view_loader.h"
#include "src/augment/view_params.h"
#include "src/report/evaluation_view.h"

namespace simclr {
namespace {

TEST(FitIntoSquare, EnlargesByRepeatingAndCenters) {
  const std::vector<uint8_t> pixels = {10, 20, 30, 40, 50, 60};  // planar, 1 x 2
  const RgbImage image = fit_into_square({pixels.data(), 1, 2}, 4);
  const std::vector<uint8_t> left = {10, 30, 50}, right = {20, 40, 60}, none = {235, 235, 235};
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 4; ++x) {
      const std::vector<uint8_t>& expected = y == 0 || y == 3 ? none : x < 2 ? left : right;
      EXPECT_EQ(std::vector<uint8_t>(image.at(y, x), image.at(y, x) + 3), expected) << y << ", " << x;
    }
  }
}

TEST(FitIntoSquare, AveragesBoxes) {
  std::vector<uint8_t> pixels(3 * 4 * 4, 0);
  pixels[0] = 10;
  pixels[1] = 20;
  pixels[4] = 30;
  pixels[5] = 43;
  EXPECT_EQ(fit_into_square({pixels.data(), 4, 4}, 2).at(0, 0)[0], 26);  // 103 / 4
  EXPECT_EQ(fit_into_square({pixels.data(), 4, 4}, 1).at(0, 0)[0], 6);   // 103 / 16
}

TEST(DrawPairs, AreTheViewsOfTheRun) {
  Settings settings;
  settings.data.synthetic = {.train_images = 40, .test_images = 4};
  settings.data.image_size = 16;
  settings.train.global_batch = 16;
  settings.train.shards = 4;
  const auto dataset = open_dataset(settings.data, Split::kTrain);
  const ChannelStatistics statistics = channel_statistics(*dataset);
  const SamplePlan plan({.seed = settings.run.seed, .count = 40, .global_batch = 16, .shards = 4});
  const ViewParams params = make_view_params(settings.views, 16, statistics);
  ViewLoader loader(*dataset, plan, params,
                    {.seed = settings.run.seed, .first_shard = 0, .shard_count = 4, .start_step = 3, .end_step = 4});
  const Batch& batch = loader.next();
  const auto pairs = draw_pairs(*dataset, settings, 3, 6, 16);
  ASSERT_EQ(pairs.size(), 6U);
  for (int64_t i = 0; i < 6; ++i) {
    const AugmentedPair& pair = pairs[i];
    EXPECT_EQ(pair.sample, batch.samples[i]);
    for (int64_t v = 0; v < 2; ++v) {
      const float* view = batch.images.sample((2 * (i / 4) + v) * 4 + i % 4).as<float>();
      for (int64_t p = 0; p < 16 * 16; ++p) {
        for (int64_t c = 0; c < 3; ++c) {
          const auto k = static_cast<size_t>(c);
          const float value = view[c * 256 + p] / params.inverse_std[k] + params.mean[k];
          ASSERT_NEAR(pair.views[v].pixels[3 * p + c], 255 * value, 0.51);
        }
      }
    }
  }
  EXPECT_EQ(draw_pairs(*dataset, settings, 0, 100, 16).size(), 16U) << "a batch has no more";
}

TEST(Grid, HasAWiderGapAfterTheFirstColumn) {
  const RgbImage dark(2, 2, 7);
  const RgbImage grid = grid_of({{dark, dark, dark}});
  EXPECT_EQ(grid.height, 10);
  EXPECT_EQ(grid.width, 4 + 2 + 12 + 2 + 4 + 2 + 4);
  for (const int64_t x : {4, 18, 24}) EXPECT_EQ(grid.at(4, x)[0], 7);
  for (const int64_t x : {3, 6, 17, 20, 23, 26}) EXPECT_EQ(grid.at(4, x)[0], 255);
}

TEST(ShownSide, IsTheSmallestMultipleFrom96On) {
  EXPECT_EQ(shown_side(32), 96);
  EXPECT_EQ(shown_side(28), 112);
  EXPECT_EQ(shown_side(224), 224);
}

TEST(EvaluationView, NamesNeighborsAndEscapesTheirClasses) {
  ImageSet set{.count = 2, .height = 4, .width = 4, .pixels = {}, .labels = {0, 1}, .class_names = {"<b>", "cat"}};
  set.pixels.assign(2 * 3 * 16, 100);
  const InMemoryDataset data(set);
  const std::vector<float> features = {1, 0, 0, 1};
  const ConstFloatMatrix matrix{.data = features.data(), .rows = 2, .cols = 2, .stride = 2};
  const EvaluationView view = view_evaluation({5, data, data, matrix, matrix});
  ASSERT_EQ(view.rows.size(), 2U);
  EXPECT_EQ(view.rows[0].size(), 3U);  // and the two of the bank
  EXPECT_EQ(view.html.find("<b>"), view.html.npos);
  EXPECT_NE(view.html.find("&lt;b&gt;</span><span class=\"dim\">1.00 ✓"), view.html.npos) << view.html;
  EXPECT_NE(view.html.find("cat</span><span class=\"dim\">0.00<"), view.html.npos);
}

TEST(EvaluationView, ShowsEveryClassWhateverTheOrder) {
  for (const bool in_turn : {true, false}) {
    ImageSet set;
    set.count = 4000;
    set.height = set.width = 1;
    set.pixels.assign(4000 * 3, 9);
    std::vector<float> features;
    for (int32_t i = 0; i < 4000; ++i) {
      set.labels.push_back(in_turn ? i % 4 : i / 1000);
      features.push_back(1);
    }
    set.class_names = {"a1", "b2", "c3", "d4"};
    const InMemoryDataset data(set);
    const ConstFloatMatrix matrix{.data = features.data(), .rows = 4000, .cols = 1, .stride = 1};
    const EvaluationView view = view_evaluation({5, data, data, matrix, matrix});
    for (const char* name : {": a1", ": b2", ": c3", ": d4"}) {
      bool shown = false;
      for (size_t at = view.html.find("test image "); at != view.html.npos; at = view.html.find("test image ", at + 1))
        shown = shown || view.html.substr(at, 24).find(name) != std::string::npos;
      EXPECT_TRUE(shown) << name << " in turn: " << in_turn;
    }
  }
}

}  // namespace
}  // namespace simclr
