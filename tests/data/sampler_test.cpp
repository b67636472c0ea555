// The order of samples: a permutation of every epoch, cut into steps and shards, the same for everybody.
#include "src/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "kernels/common/error.h"
#include "kernels/common/philox.h"

namespace simclr {
namespace {

using testing::HasSubstr;

TEST(EpochOrder, IsAPermutation) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<uint32_t> order = epoch_order(3, 5, count);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
    EXPECT_EQ(static_cast<int64_t>(order.size()), count);
  }
}

// The documented draws, taken from the generator by hand: three images, two draws.
TEST(EpochOrder, FollowsItsDescription) {
  const PhiloxCounter w = philox4x32({0, 0, 9, 0}, philox_key(3, RandomPurpose::kSampleOrder));
  const auto scaled = [](uint32_t low, uint32_t high, int n) {
    return static_cast<size_t>((static_cast<long double>(high) * 4294967296.0L + low) / 18446744073709551616.0L * n);
  };
  std::vector<uint32_t> expected = {0, 1, 2};
  std::swap(expected[2], expected[scaled(w[0], w[1], 3)]);
  std::swap(expected[1], expected[scaled(w[2], w[3], 2)]);
  EXPECT_EQ(epoch_order(3, 9, 3), expected);
}

TEST(EpochOrder, DependsOnSeedAndEpoch) {
  std::set<std::vector<uint32_t>> orders;
  for (const uint64_t seed : {1ull, 2ull, 1ull << 40}) {
    for (const int64_t epoch : {int64_t{0}, int64_t{1}, int64_t{1} << 33}) orders.insert(epoch_order(seed, epoch, 50));
  }
  EXPECT_EQ(orders.size(), 9u);
}

TEST(EpochOrder, GivesEveryPermutationAlike) {
  std::map<std::vector<uint32_t>, int> counts;
  for (int64_t epoch = 0; epoch < 24000; ++epoch) ++counts[epoch_order(1, epoch, 4)];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 155);  // five standard deviations
}

TEST(SamplePlan, CutsTheOrderIntoStepsAndShards) {
  const SamplePlan plan({.seed = 7, .count = 27, .global_batch = 8, .shards = 4});
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.dropped_per_epoch(), 3);
  EXPECT_EQ(plan.images_per_shard(), 2);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<uint32_t> order = epoch_order(7, epoch, 27);
    size_t at = 0;
    for (int64_t step = 3 * epoch; step < 3 * epoch + 3; ++step) {
      EXPECT_EQ(plan.epoch_of(step), epoch);
      for (int64_t shard = 0; shard < 4; ++shard) {
        for (const int64_t sample : plan.samples_of(step, shard)) ASSERT_EQ(sample, order[at++]);
      }
    }
    EXPECT_EQ(at, 24u);
  }
}

TEST(SamplePlan, TheCutIntoShardsDoesNotChangeTheStep) {
  std::vector<std::vector<int64_t>> steps;
  for (const int64_t shards : {1, 2, 8}) {
    const SamplePlan plan({.seed = 7, .count = 100, .global_batch = 16, .shards = shards});
    std::vector<int64_t> all;
    for (int64_t s = 0; s < shards; ++s) {
      const std::vector<int64_t> part = plan.samples_of(8, s);
      all.insert(all.end(), part.begin(), part.end());
    }
    steps.push_back(all);
  }
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[0], steps[2]);
}

TEST(SamplePlan, RefusesWhatCannotBeCut) {
  const auto refusal = [](const SamplePlanSettings& settings) -> std::pair<ExitCode, std::string> {
    try {
      SamplePlan plan(settings);
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {ExitCode::kDone, ""};
  };
  const auto [few, few_text] = refusal({.count = 100, .global_batch = 128, .shards = 8});
  EXPECT_EQ(few, ExitCode::kData);
  EXPECT_THAT(few_text,
              HasSubstr("100 images, fewer than one global batch of 128: lower train.global_batch, to 96 at most"));
  const auto [none, none_text] = refusal({.count = 7, .global_batch = 8, .shards = 8});
  EXPECT_EQ(none, ExitCode::kData);
  EXPECT_THAT(none_text, HasSubstr("batch of 8: add images"));
  const auto [odd, odd_text] = refusal({.count = 1000, .global_batch = 100, .shards = 8});
  EXPECT_EQ(odd, ExitCode::kUsage);
  EXPECT_THAT(odd_text, HasSubstr("100 is not a multiple of train.shards 8"));
}

TEST(SamplePlan, ServesThreadsInDifferentEpochs) {
  const SamplePlan plan({.seed = 7, .count = 64, .global_batch = 16, .shards = 2});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&plan, &wrong, t] {
      for (int64_t step = static_cast<int64_t>(t); step < 200; step += 3) {
        const std::vector<uint32_t> order = epoch_order(7, step / 4, 64);
        const std::vector<int64_t> samples = plan.samples_of(step, 1);
        for (size_t i = 0; i < 8; ++i) wrong[t] += samples[i] != order[static_cast<size_t>(step % 4) * 16 + 8 + i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace simclr
