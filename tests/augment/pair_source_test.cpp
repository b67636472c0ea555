// Pairs for alignment and uniformity: which views of which images, and that calls and threads change nothing.
#include "src/augment/pair_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "src/data/synthetic.h"

namespace simclr {
namespace {

using testing::ElementsAre;

TEST(SpreadImages, ByHand) {
  EXPECT_THAT(spread_images(10, 4), ElementsAre(0, 2, 5, 7));
  EXPECT_THAT(spread_images(3, 5), ElementsAre(0, 1, 2));
  EXPECT_THAT(spread_images(0, 5), ElementsAre());
}

struct Case {
  std::unique_ptr<Dataset> dataset =
      std::make_unique<InMemoryDataset>(draw_synthetic({.train_images = 8, .test_images = 8}, Split::kTest, no_beat));
  ViewParams params = make_view_params({}, 16, {.mean = {0.5, 0.5, 0.5}, .std = {0.2, 0.2, 0.2}});

  // All views of images 6, 1 and 3, in calls of shards * samples views.
  std::vector<float> views(int64_t shards, int64_t samples, int threads) const {
    Context context(threads);
    const auto source = make_pair_source(context, *dataset, params, 3, {6, 1, 3}, shards, samples);
    std::vector<float> all;
    for (int64_t first = 0; first < 6; first += source->call_images()) {
      const ConstImages images = source->load(first);
      const float* views = images.data.as<float>();
      all.insert(all.end(), views, views + images.elements());
    }
    return all;
  }
};

TEST(PairSource, HoldsTheTwoViewsOfEachImageInTurn) {
  const Case c;
  const std::vector<float> all = c.views(2, 4, 1);  // one call of 8 places for 6 views
  constexpr size_t kView = 3 * 16 * 16;
  std::vector<float> expected(kView);
  const std::vector<int64_t> images = {6, 6, 1, 1, 3, 3};
  std::vector<uint8_t> storage;
  for (size_t place = 0; place < 6; ++place) {
    const PlanarImage image = c.dataset->image(images[place], storage);
    std::vector<std::byte> scratch(view_scratch_bytes(c.params, image.height, image.width));
    const ViewDraw draw = draw_view(c.params, philox_key(3, RandomPurpose::kViews),
                                    {.view = static_cast<uint32_t>(place % 2),
                                     .sample = static_cast<uint32_t>(images[place]),
                                     .epoch = 0xFFFFFFFFU},
                                    image.height, image.width);
    render_view(image, draw, c.params, scratch, expected.data());
    EXPECT_EQ(std::memcmp(expected.data(), all.data() + place * kView, kView * sizeof(float)), 0) << place;
  }
  for (size_t k = 6 * kView; k < 8 * kView; ++k) ASSERT_EQ(all[k], 0.0F) << "padding";
}

TEST(PairSource, CallsAndThreadsChangeNothing) {
  const Case c;
  std::vector<float> expected = c.views(2, 4, 1);
  expected.resize(6 * 3 * 16 * 16);
  EXPECT_EQ(c.views(1, 2, 3), expected);
  EXPECT_EQ(c.views(3, 2, 2), expected);
}

}  // namespace
}  // namespace simclr
