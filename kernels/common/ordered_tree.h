// The one order in which everything is summed over shards: the balanced binary tree
// ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7)). A rank sums its own consecutive shards with it, ordered_sum the upper levels,
// so the result has the same bits for every number of ranks (docs/decisions/0002-shards-and-ordered-sums.md).
#pragma once

#include <cstdint>

#include "kernels/common/error.h"

namespace simclr {

// Adds parts[0..count) element by element in tree order; the sum ends in parts[0], the others are destroyed.
// part(i) gives the pointer to part i; [begin, end) is the range of elements. count is a power of two.
template <typename T, typename PartFn>
void ordered_tree_sum(PartFn&& part, int64_t count, int64_t begin, int64_t end) {
  SIMCLR_CHECK(count > 0 && (count & (count - 1)) == 0, "a tree over {} parts: not a power of two", count);
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i < count; i += 2 * step) {
      T* __restrict left = part(i);
      const T* __restrict right = part(i + step);
      for (int64_t k = begin; k < end; ++k) left[k] += right[k];
    }
  }
}

}  // namespace simclr
