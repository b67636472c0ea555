// The order of samples.
#include "src/data/sampler.h"

#include <numeric>
#include <utility>

#include "kernels/common/error.h"
#include "kernels/common/philox.h"

namespace simclr {
namespace {

// floor((high * 2^32 + low) * n / 2^64), exactly, for n < 2^32.
uint32_t scale_64(uint32_t low, uint32_t high, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{high} * n + ((uint64_t{low} * n) >> 32)) >> 32);
}

}  // namespace

std::vector<uint32_t> epoch_order(uint64_t seed, int64_t epoch, int64_t count) {
  SIMCLR_CHECK(epoch >= 0 && count >= 0 && count < (int64_t{1} << 32), "epoch {}, {} images", epoch, count);
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  PhiloxStream random(philox_key(seed, RandomPurpose::kSampleOrder), 0, static_cast<uint32_t>(epoch),
                      static_cast<uint32_t>(epoch >> 32));
  for (int64_t i = count - 1; i > 0; --i) {
    const uint32_t low = random.next(), high = random.next();
    std::swap(order[i], order[scale_64(low, high, static_cast<uint32_t>(i + 1))]);
  }
  return order;
}

SamplePlan::SamplePlan(const SamplePlanSettings& settings) : settings_(settings) {
  const auto& [seed, count, batch, shards] = settings_;
  SIMCLR_CHECK(batch >= 1 && shards >= 1, "global batch {}, shards {}", batch, shards);
  if (batch % shards != 0) {
    fail(ExitCode::kUsage, "train.global_batch {} is not a multiple of train.shards {}; set one of them to fit", batch,
         shards);
  }
  if (count < batch) {
    const int64_t most = count / shards * shards;
    fail(ExitCode::kData, "the training split has {} images, fewer than one global batch of {}: {}", count, batch,
         most >= 2 ? fmt::format("lower train.global_batch, to {} at most, or add images", most) : "add images");
  }
}

SamplePlan::Order SamplePlan::order_of(int64_t epoch) const {
  const std::scoped_lock lock(mutex_);
  CachedOrder& cached = cache_[epoch % 2];
  if (cached.epoch != epoch) {
    cached = {epoch,
              std::make_shared<const std::vector<uint32_t>>(epoch_order(settings_.seed, epoch, settings_.count))};
  }
  return cached.order;
}

std::vector<int64_t> SamplePlan::samples_of(int64_t step, int64_t shard) const {
  SIMCLR_CHECK(step >= 0 && shard >= 0 && shard < settings_.shards, "step {}, shard {} of {}", step, shard,
               settings_.shards);
  const Order order = order_of(epoch_of(step));
  const auto begin = order->begin() + (step % steps_per_epoch() * settings_.global_batch + shard * images_per_shard());
  return {begin, begin + images_per_shard()};
}

}  // namespace simclr
