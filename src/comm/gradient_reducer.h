// Sums the gradients of all ranks while backward still computes: one flat buffer, cut into buckets from its end, since
// backward completes the last parameters first. A bucket is one ordered_sum; the cut changes no bits.
#pragma once

#include <cstdint>
#include <span>

#include "src/comm/collectives.h"

namespace simclr {

class GradientReducer {
 public:
  // 1 Mi elements: 4 MiB a bucket.
  explicit GradientReducer(Collectives& collectives, int64_t bucket_elements = int64_t{1} << 20);

  // grad_parameters = sum over ranks, in tree order, when finish() has been called; the loss is the global mean, so no
  // factor of W appears. begin() once per step, before backward completes anything.
  void begin(std::span<float> grad_parameters);
  // The elements from `first` on are complete: buckets that lie there whole are started. `first` never grows.
  void ready_from(int64_t first);
  // All elements are complete. What is queued after this sees the sums.
  void finish();

  // The three in one.
  void reduce(std::span<float> grad_parameters);

 private:
  void start_bucket(int64_t begin);

  Collectives& collectives_;
  const int64_t bucket_elements_;
  std::span<float> gradients_;
  int64_t waiting_ = 0;  // elements [0, waiting_) are in no bucket yet
};

}  // namespace simclr
