// Sums the gradients of all ranks: one flat buffer, cut into buckets. A bucket is one ordered_sum; the cut changes no
// bits. Overlapping the sums with the backward pass will start buckets from here as their layers get ready.
#pragma once

#include <cstdint>
#include <span>

#include "src/comm/collectives.h"

namespace simclr {

class GradientReducer {
 public:
  // 1 Mi elements: 4 MiB a bucket.
  explicit GradientReducer(Collectives& collectives, int64_t bucket_elements = int64_t{1} << 20);

  // grad_parameters = sum over ranks, in tree order; the loss is the global mean, so no factor of W appears.
  void reduce(std::span<float> grad_parameters);

 private:
  Collectives& collectives_;
  const int64_t bucket_elements_;
};

}  // namespace simclr
