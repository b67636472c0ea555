// Views of images that are decoded at a part of their size: the rules in numbers, then batches of an image folder.
#include <gtest/gtest.h>

#include <cmath>

#include "src/augment/evaluation_loader.h"
#include "src/augment/reduced_crops.h"
#include "src/augment/view_loader.h"
#include "src/data/image_folder.h"
#include "tests/augment/image_support.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/encoded_images.h"

namespace simclr {
namespace {

using test::encode_jpeg;
using test::encode_png;
using test::gradient;
using test::usual_views;

TEST(ReducedCrops, KeepBothViewsAtTheirSize) {
  const CropBox large{.height = 128, .width = 130}, narrow{.height = 500, .width = 63};
  EXPECT_EQ(largest_reduction({large, large}, 16), 8);
  EXPECT_EQ(largest_reduction({large, narrow}, 16), 2);
  EXPECT_EQ(largest_reduction({large, large}, 64), 2);
  EXPECT_EQ(largest_reduction({large, large}, 65), 1);
  EXPECT_EQ(largest_reduction({narrow}, 64), 1);
}

TEST(ReducedCrops, FollowTheImage) {
  const PlanarImage half{nullptr, 51, 100};  // of 101 x 200
  EXPECT_EQ(crop_of_reduced({.top = 0, .left = 0, .height = 101, .width = 200}, 101, 200, half),
            (CropBox{.top = 0, .left = 0, .height = 51, .width = 100}));
  EXPECT_EQ(crop_of_reduced({.top = 50, .left = 101, .height = 51, .width = 60}, 101, 200, half),
            (CropBox{.top = 25, .left = 51, .height = 26, .width = 30}));  // 25.2; 50.5 to 80.5
  const CropBox corner{.top = 100, .left = 199, .height = 1, .width = 1};
  EXPECT_EQ(crop_of_reduced(corner, 101, 200, half), (CropBox{.top = 50, .left = 99, .height = 1, .width = 1}));
  EXPECT_EQ(crop_of_reduced(corner, 101, 200, {nullptr, 101, 200}), corner);
}

// 24 JPEG and PNG images of several sizes, large compared with views of 16 pixels.
class DecodedImages : public testing::Test {
 protected:
  DecodedImages() {
    for (int64_t i = 0; i < 24; ++i) {
      const auto image = gradient(100 + 9 * i, 300 - 11 * i);
      test::write_file(folder_.path() / std::to_string(i), i % 5 == 0 ? encode_png(image) : encode_jpeg(image));
    }
    settings_.path = folder_.path();
    set_ = open_image_folder(settings_, Split::kTrain);
  }
  std::vector<float> images(ViewLoaderSettings settings, const Dataset& set) const {
    const SamplePlan plan({.seed = 3, .count = set.count(), .global_batch = 8, .shards = 4});
    settings.seed = 3;
    settings.end_step = 4;
    ViewLoader loader(set, plan, usual_views(16), settings);
    std::vector<float> all;
    for (int64_t step = 0; step < 4; ++step) {
      const Batch& batch = loader.next();
      const float* views = batch.images.data.as<float>();
      all.insert(all.end(), views, views + batch.images.elements());
    }
    return all;
  }

  TemporaryFolder folder_;
  DataSettings settings_;
  std::unique_ptr<Dataset> set_;
};

// As the set, but decodes everything whole.
class Whole final : public Dataset {
 public:
  explicit Whole(const Dataset& set) : set_(set) {}
  int64_t count() const override { return set_.count(); }
  int32_t label(int64_t i) const override { return set_.label(i); }
  const std::vector<std::string>& class_names() const override { return set_.class_names(); }
  std::string fingerprint(const Beat&) const override { return ""; }
  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override { return set_.image(i, storage); }

 private:
  const Dataset& set_;
};

TEST_F(DecodedImages, WorkersAndRanksChangeNoBit) {
  const std::vector<float> all = images({.first_shard = 0, .shard_count = 4, .workers = 0}, *set_);
  EXPECT_EQ(images({.first_shard = 0, .shard_count = 4, .workers = 3}, *set_), all);
  const std::vector<float> last = images({.first_shard = 3, .shard_count = 1, .workers = 2}, *set_);
  const size_t shard = last.size() / 4;
  for (size_t step = 0; step < 4; ++step) {
    EXPECT_TRUE(std::equal(last.begin() + static_cast<int64_t>(step * shard),
                           last.begin() + static_cast<int64_t>((step + 1) * shard),
                           all.begin() + static_cast<int64_t>((4 * step + 3) * shard)));
  }
}

TEST_F(DecodedImages, AReducedImageShowsWhatTheWholeOneDoes) {
  const std::vector<float> reduced = images({.first_shard = 0, .shard_count = 4, .workers = 0}, *set_);
  const std::vector<float> whole = images({.first_shard = 0, .shard_count = 4, .workers = 0}, Whole(*set_));
  ASSERT_EQ(reduced.size(), whole.size());
  EXPECT_NE(reduced, whole) << "nothing was reduced";
  double difference = 0, size = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    difference += std::abs(reduced[i] - whole[i]);
    size += std::abs(whole[i]);
  }
  EXPECT_LT(difference / size, 0.03);  // smooth images, crops moved by half a reduced pixel at most
}

TEST_F(DecodedImages, EvaluationDependsOnNoThreads) {
  const ViewParams params{.size = 16};
  std::vector<float> one(24 * 3 * 256), three(one.size());
  EvaluationLoader(*set_, params, 1).fill(0, {one.data(), 1, 24, 3, 16, 16});
  EvaluationLoader(*set_, params, 3).fill(0, {three.data(), 1, 24, 3, 16, 16});
  EXPECT_EQ(one, three);
}

TEST(ResolveWorkers, TakesAllCoresForImagesThatAreDecoded) {
  EXPECT_EQ(resolve_workers(-1, false, 8), 1);
  EXPECT_EQ(resolve_workers(-1, true, 8), 8);
  EXPECT_EQ(resolve_workers(0, true, 8), 0);
  EXPECT_EQ(resolve_workers(3, false, 8), 3);
}

}  // namespace
}  // namespace simclr
