// What implementations of Collectives share about typed runs of elements: sizes, and the sum in tree order by type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/error.h"
#include "kernels/common/ordered_tree.h"
#include "src/comm/collectives.h"

namespace simclr {

constexpr int64_t element_bytes(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : type == ElementType::kFloat64 ? 8 : 1;
}

template <bool kConst>
int64_t bytes_of(const BasicTypedSpan<kConst>& span) {
  return span.count * element_bytes(span.type);
}

// Adds parts[0..parts_count) element by element in the tree order; the sum ends in parts[0], the others are destroyed.
// part(i) is the std::byte* of part i; [begin, end) are elements. parts_count is a power of two.
template <typename PartFn>
void ordered_tree_sum_typed(ElementType type, PartFn&& part, int64_t parts_count, int64_t begin, int64_t end) {
  if (type == ElementType::kFloat32) {
    ordered_tree_sum<float>([&](int64_t i) { return reinterpret_cast<float*>(part(i)); }, parts_count, begin, end);
  } else {
    SIMCLR_CHECK(type == ElementType::kFloat64, "only float32 and float64 can be summed");
    ordered_tree_sum<double>([&](int64_t i) { return reinterpret_cast<double*>(part(i)); }, parts_count, begin, end);
  }
}

constexpr bool is_power_of_two(int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// The conditions of collectives.h that only a defect can break, alike for every implementation.
inline void check_all_gather(ConstTypedSpan send, TypedSpan receive, int ranks) {
  SIMCLR_CHECK(send.count >= 0 && receive.count == send.count * ranks && receive.type == send.type,
               "all_gather: {} elements from each of {} ranks into {}", send.count, ranks, receive.count);
}
inline void check_reduce_scatter(ConstTypedSpan send, TypedSpan receive, int ranks) {
  SIMCLR_CHECK(receive.count >= 0 && send.count == receive.count * ranks && receive.type == send.type,
               "reduce_scatter: {} elements to {} ranks with {} each", send.count, ranks, receive.count);
  SIMCLR_CHECK(send.type != ElementType::kByte, "only float32 and float64 can be summed");
}
inline void check_sum(ConstTypedSpan data, int ranks) {
  SIMCLR_CHECK(data.count >= 0 && data.type != ElementType::kByte, "a sum of {} elements over {} ranks", data.count,
               ranks);
}
inline void check_tree(int ranks) {
  SIMCLR_CHECK(is_power_of_two(ranks), "an ordered sum over {} ranks: not a power of two", ranks);
}
inline void check_root(int root, int ranks) {
  SIMCLR_CHECK(root >= 0 && root < ranks, "broadcast from rank {} of {}", root, ranks);
}

}  // namespace simclr
