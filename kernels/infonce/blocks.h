// How the CPU cuts the matrices of infonce into tasks. A cut is a function of the problem alone, never of threads or
// ranks, because a product's bits may change with the number of rows in the call.
#pragma once

#include <cstdint>

#include "kernels/common/views.h"

namespace simclr::detail {

inline constexpr int64_t kAnchorBlock = 128;  // rows of one view of one shard
inline constexpr int64_t kKeyBlock = 128;     // rows of grad_keys

constexpr int64_t count_blocks(int64_t rows, int64_t block) {
  return (rows + block - 1) / block;
}

// Floats from one shard's matrix to the next, so that each starts at 256 bytes whatever shard the rank begins with.
constexpr int64_t aligned_elements(int64_t rows, int64_t cols) {
  return round_up(rows * cols, 64);
}

}  // namespace simclr::detail
