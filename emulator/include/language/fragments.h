// Where the elements of a fragment lie: over the lanes of a warp as in PTX's mma.m16n8k8 (tf32) and mma.m16n8k16
// (bfloat16), two of which make a product of 16 columns. That is what GPUs from sm_80 on do; WMMA leaves it open, so
// nothing may rely on it. And the product itself, a collective of the warp.
#pragma once

#include "language/thread.h"

namespace simclr::emulator {

struct Place {
  int row, column;
};

// Element `index` of the lane's part of a [16, depth]; depth is 8 or 16.
constexpr Place place_in_a(int depth, int lane, int index) {
  const int group = lane / 4, within = lane % 4;
  if (depth == 8) return {group + index % 2 * 8, within + index / 2 * 4};
  return {group + index / 2 % 2 * 8, 2 * within + index % 2 + index / 4 * 8};
}
// The same of b [depth, 16].
constexpr Place place_in_b(int depth, int lane, int index) {
  const int group = lane / 4, within = lane % 4;
  if (depth == 8) return {within + index % 2 * 4, group + index / 2 * 8};
  return {2 * within + index % 2 + index / 2 % 2 * 8, group + index / 4 * 8};
}
// The same of an accumulator [16, 16]: 8 elements a lane.
constexpr Place place_in_accumulator(int lane, int index) {
  return {lane / 4 + index / 2 % 2 * 8, lane % 4 * 2 + index % 2 + index / 4 * 8};
}

// What one lane brings to a product, as floats that the tensor cores take as they are.
struct LaneOperands {
  int depth;
  const float* a;  // [depth / 2]
  const float* b;  // [depth / 2]
  const float* c;  // [8]
  float* d;        // [8], may be c
};

// d = a b + c by all 32 lanes of a warp. Products are exact; their sum with c, here exact but for double's rounding, is
// rounded towards zero: what Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ CS 2021, found on GPUs,
// whose sum is a little coarser.
void multiply_fragments(const LaneOperands& operands, Where where);
// Ends the kernel: a fragment comes from or goes to a wrong address.
[[noreturn]] void refuse_fragment(const void* address, unsigned stride_bytes, Where where);
// Of this CUDA thread.
int lane_of_thread();

}  // namespace simclr::emulator
