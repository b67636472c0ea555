// Sums and maxima over the threads of a warp or a block in one fixed order: the balanced binary tree over neighboring
// lanes, then over neighboring warps. Only for *.cu files.
#pragma once

#include <cuda_runtime.h>

namespace simclr {

inline constexpr unsigned kWholeWarp = 0xffffffffU;
inline constexpr int kMostWarps = 32;  // of a block

struct Add {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// Of a number and a NaN, the number.
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// combine is commutative; every lane of the warp takes part and gets the result.
template <typename T, typename Combine>
__device__ T warp_reduce(T value, Combine combine) {
  for (int step = 1; step < warpSize; step *= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, step));
  }
  return value;
}

// Every thread of the block takes part and gets the result. The block is one-dimensional, with a power of two of warps.
// of_warp: kMostWarps elements of shared memory, which another call may use after this one.
template <typename T, typename Combine>
__device__ T block_reduce(T value, Combine combine, T* of_warp) {
  const int threads = blockDim.x, thread = threadIdx.x, warps = threads / warpSize, lane = thread % warpSize;
  value = warp_reduce(value, combine);
  __syncthreads();  // of_warp of the call before has been read
  if (lane == 0) of_warp[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = of_warp[lane % warps];
  for (int step = 1; step < warps; step *= 2) value = combine(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
}

}  // namespace simclr
