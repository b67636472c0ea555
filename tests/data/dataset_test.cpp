// Images in memory: what comes out is what went in, statistics and fingerprint.
#include "src/data/dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "kernels/common/error.h"

namespace simclr {
namespace {

// Two images of 1x2 pixels: channel values {0, 255, 0, 255}, {51, 51, 51, 51}, {0, 0, 0, 255}.
ImageSet two_images() {
  return {.count = 2,
          .height = 1,
          .width = 2,
          .pixels = {0, 255, 51, 51, 0, 0, 0, 255, 51, 51, 0, 255},
          .labels = {0, 1},
          .class_names = {"a", "b"}};
}

TEST(InMemoryDataset, HandsOutPlanarImages) {
  const InMemoryDataset dataset(two_images());
  std::vector<uint8_t> storage;
  const PlanarImage image = dataset.image(1, storage);
  EXPECT_EQ(image.height, 1);
  EXPECT_EQ(image.width, 2);
  EXPECT_EQ(image.row(0, 0)[1], 255);
  EXPECT_EQ(image.row(1, 0)[0], 51);
  EXPECT_EQ(image.row(2, 0)[1], 255);
  EXPECT_EQ(dataset.count(), 2);
  EXPECT_EQ(dataset.label(1), 1);
  EXPECT_EQ(dataset.class_names()[1], "b");
}

TEST(ChannelStatistics, ByHand) {
  const ChannelStatistics s = channel_statistics(InMemoryDataset(two_images()));
  EXPECT_DOUBLE_EQ(s.mean[0], 0.5);
  EXPECT_DOUBLE_EQ(s.std[0], 0.5);
  EXPECT_DOUBLE_EQ(s.mean[1], 0.2);
  EXPECT_DOUBLE_EQ(s.std[1], 0.0);
  EXPECT_DOUBLE_EQ(s.mean[2], 0.25);
  EXPECT_DOUBLE_EQ(s.std[2], std::sqrt(3.0) / 4);
}

TEST(ChannelStatistics, RefusesAnEmptySet) {
  EXPECT_THROW(channel_statistics(InMemoryDataset(
                   {.count = 0, .height = 1, .width = 1, .pixels = {}, .labels = {}, .class_names = {}})),
               Error);
}

TEST(Fingerprint, ChangesWithPixelsLabelsAndShape) {
  const std::string original = InMemoryDataset(two_images()).fingerprint(no_beat);
  EXPECT_EQ(original.size(), 64u);
  EXPECT_EQ(InMemoryDataset(two_images()).fingerprint(no_beat), original);
  ImageSet changed = two_images();
  changed.pixels[7] = 254;
  EXPECT_NE(InMemoryDataset(changed).fingerprint(no_beat), original);
  changed = two_images();
  changed.labels[0] = 1;
  EXPECT_NE(InMemoryDataset(changed).fingerprint(no_beat), original);
  changed = two_images();
  std::swap(changed.height, changed.width);
  EXPECT_NE(InMemoryDataset(changed).fingerprint(no_beat), original);
}

TEST(InMemoryDataset, ChecksWhatItIsGiven) {
  ImageSet wrong = two_images();
  wrong.labels[1] = 2;
  EXPECT_THROW(InMemoryDataset{wrong}, Error);
  wrong = two_images();
  wrong.pixels.pop_back();
  EXPECT_THROW(InMemoryDataset{wrong}, Error);
}

TEST(OpenDataset, OpensTheEmbeddedSetByDefault) {
  DataSettings settings;
  settings.synthetic.test_images = 8;
  const auto dataset = open_dataset(settings, Split::kTest);
  EXPECT_EQ(dataset->count(), 8);
  EXPECT_EQ(dataset->class_names().front(), "disc");
}

TEST(Beats, AsTheImagesAreDrawnHashedAndLookedThrough) {
  int beats = 0;
  const Beat beat = [&] { ++beats; };
  DataSettings settings;
  settings.synthetic = {.train_images = 500, .test_images = 7};
  const auto dataset = open_dataset(settings, Split::kTrain, beat);
  EXPECT_EQ(beats, 500);
  beats = 0;
  dataset->fingerprint(beat);
  EXPECT_EQ(beats, 3) << "500 images of 3 KiB: two pieces; labels: one";
  beats = 0;
  channel_statistics(*dataset, beat);
  EXPECT_EQ(beats, 500);
}

}  // namespace
}  // namespace simclr
