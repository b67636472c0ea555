// The sum over shards in the one order (ordered_tree.h), for one element in the registers of one thread. Only for *.cu
// files.
#pragma once

#include <cstdint>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

inline constexpr int kMostTreeParts = 1024;  // as many as train.shards may be
inline constexpr int kTreeLevels = 11;       // log2 of it, and one

// count, checked on the host.
inline int tree_parts(int64_t count) {
  SIMCLR_CHECK(count >= 1 && count <= kMostTreeParts && (count & (count - 1)) == 0,
               "a tree over {} parts: not a power of two up to {}", count, kMostTreeParts);
  return to_int(count);
}

// ((p0+p1)+(p2+p3))+((p4+p5)+...) with p_i = part(i); count is a power of two, at most kMostTreeParts.
template <typename T, typename PartFn>
__device__ T ordered_tree_value(PartFn&& part, int count) {
  // A binary counter: level l holds the sum of 2^l neighboring parts that waits for its sibling.
  T waiting[kTreeLevels] = {};
  T value = 0;
  for (int i = 0; i < count; ++i) {
    value = part(i);
    int level = 0;
    for (int left = i; left & 1; left >>= 1) value = waiting[level++] + value;
    waiting[level] = value;
  }
  return value;
}

}  // namespace simclr
