// Who encodes which images, and that every rank ends with the same matrix.
#include "src/evaluate/feature_extractor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <set>

#include "kernels/common/error.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

using testing::HasSubstr;

// The feature of image i names it: (i, first of the call, 3 i). Padding rows hold what must never be seen.
struct NumberedImages {
  std::vector<float> memory;
  std::vector<int64_t> firsts, counts;

  FeatureSource source(int64_t images, int64_t call_images) {
    return {.images = images,
            .call_images = call_images,
            .feature_size = 3,
            .encode = [this, call_images](int64_t first, int64_t count) {
              constexpr int64_t kStride = 16;
              memory.assign(call_images * kStride, std::numeric_limits<float>::quiet_NaN());
              for (int64_t i = 0; i < count; ++i) {
                float* row = memory.data() + i * kStride;
                row[0] = static_cast<float>(first + i);
                row[1] = static_cast<float>(first);
                row[2] = 3 * row[0];
              }
              firsts.push_back(first);
              counts.push_back(count);
              return ConstFloatMatrix{memory.data(), call_images, 3, kStride};
            }};
  }
};

TEST(ExtractFeatures, EveryRankHasAllRowsInOrder) {
  for (int ranks : {1, 2, 3, 4, 8}) {
    for (int64_t images : {1, 3, 4, 5, 8, 29, 32}) {
      std::mutex mutex;
      std::multiset<int64_t> firsts;
      run_ranks(ranks, [&](Collectives& collectives) {
        NumberedImages numbered;
        const FeatureMatrix all = extract_features(collectives, numbered.source(images, 4));
        ASSERT_EQ(all.view.rows, images);
        ASSERT_EQ(all.view.cols, 3);
        for (int64_t i = 0; i < images; ++i) {
          ASSERT_EQ(all.view.row(i)[0], static_cast<float>(i)) << ranks << " ranks, " << images << " images";
          ASSERT_EQ(all.view.row(i)[1], static_cast<float>(i / 4 * 4)) << "in the call that starts at a multiple of 4";
          ASSERT_EQ(all.view.row(i)[2], static_cast<float>(3 * i));
        }
        const std::lock_guard lock(mutex);
        firsts.insert(numbered.firsts.begin(), numbered.firsts.end());
        for (size_t c = 0; c < numbered.firsts.size(); ++c) {
          EXPECT_EQ(numbered.counts[c], std::min<int64_t>(4, images - numbered.firsts[c]));
        }
      });
      std::multiset<int64_t> expected;
      for (int64_t first = 0; first < images; first += 4) expected.insert(first);
      EXPECT_EQ(firsts, expected) << "each call once, over all ranks";
    }
  }
}

TEST(NormalizeFeatures, RowsGetUnitLength) {
  std::vector<float> values = {3, 4, 0, 0, -2, 0};
  normalize_features(CpuExec{}, {values.data(), 3, 2, 2});
  EXPECT_EQ(values, (std::vector<float>{0.6F, 0.8F, 0, 0, -1, 0}));
}

TEST(NormalizeFeatures, NonFiniteOnesAreNamed) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values = {3, 4, 0, bad};
    try {
      normalize_features(CpuExec{}, {values.data(), 2, 2, 2});
      ADD_FAILURE() << "no Error was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kDiverged);
      EXPECT_THAT(error.what(), HasSubstr("image 1"));
    }
  }
}

}  // namespace
}  // namespace simclr
