// The images of each step: a pure function of (seed, step), the same on every rank. Steps count from 0 over the whole
// run, so a resumed run continues where it stopped, also in the middle of an epoch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace simclr {

// Permutation of [0, count) of one epoch. Fisher-Yates from the end: for i = count-1 .. 1 swap order[i] with order[j],
// j = floor(r (i+1) / 2^64), r the 64-bit draw number count-1-i of Philox (key: seed, kSampleOrder; counter: block, 0,
// epoch low, epoch high; two words a draw, low word first). The bias of j is below 2^-32. count < 2^32.
std::vector<uint32_t> epoch_order(uint64_t seed, int64_t epoch, int64_t count);

struct SamplePlanSettings {
  uint64_t seed = 0;
  int64_t count = 0;         // images
  int64_t global_batch = 0;  // images a step, B
  int64_t shards = 0;        // parts of the global batch, S; divides B
};

// Cuts each epoch's order into steps of B images and those into S shards of n = B/S; the incomplete last step is
// dropped. Threads may call it at the same time.
class SamplePlan {
 public:
  // Error(kData) for fewer images than one global batch, Error(kUsage) for a batch that the shards do not divide.
  explicit SamplePlan(const SamplePlanSettings& settings);

  int64_t steps_per_epoch() const { return settings_.count / settings_.global_batch; }
  int64_t dropped_per_epoch() const { return settings_.count % settings_.global_batch; }  // images
  int64_t images_per_shard() const { return settings_.global_batch / settings_.shards; }
  int64_t shards() const { return settings_.shards; }
  int64_t epoch_of(int64_t step) const { return step / steps_per_epoch(); }

  // The n images of a shard in a step.
  std::vector<int64_t> samples_of(int64_t step, int64_t shard) const;

 private:
  using Order = std::shared_ptr<const std::vector<uint32_t>>;
  Order order_of(int64_t epoch) const;

  SamplePlanSettings settings_;
  struct CachedOrder {
    int64_t epoch = -1;
    Order order;
  };
  mutable std::mutex mutex_;
  mutable std::array<CachedOrder, 2> cache_;  // by epoch % 2: this epoch's and, when prefetching, the next one's
};

}  // namespace simclr
