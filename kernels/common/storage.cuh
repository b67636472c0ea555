// Elements of feature maps and matrices in kernels: stored as float or bfloat16, computed with as float. Only for *.cu
// files.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/common/elements.h"

namespace simclr {

template <>
struct DataTypeOf<__nv_bfloat16> {
  static constexpr DataType value = DataType::kBfloat16;
};

__device__ inline float to_float(float v) {
  return v;
}
__device__ inline float to_float(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
template <typename T>
__device__ T to_storage(float v) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return v;
  } else {
    return __float2bfloat16(v);
  }
}

// Four neighboring elements in one access of memory; the address is a multiple of their size.
inline constexpr int kFour = 4;
template <typename T>
struct alignas(kFour * sizeof(T)) Four {
  T value[kFour];
};
template <typename T>
__device__ void load_four(const T* p, float (&v)[kFour]) {
  const Four<T> stored = *reinterpret_cast<const Four<T>*>(p);
  for (int k = 0; k < kFour; ++k) v[k] = to_float(stored.value[k]);
}
template <typename T>
__device__ void store_four(T* p, const float (&v)[kFour]) {
  Four<T> stored;
  for (int k = 0; k < kFour; ++k) stored.value[k] = to_storage<T>(v[k]);
  *reinterpret_cast<Four<T>*>(p) = stored;
}
// The same where the array may end within the four: `left` elements are there. What is not there is read as 0.
template <typename T>
__device__ void load_four(const T* p, int64_t left, float (&v)[kFour]) {
  if (left >= kFour) return load_four(p, v);
  for (int k = 0; k < kFour; ++k) v[k] = k < left ? to_float(p[k]) : 0.0F;
}
template <typename T>
__device__ void store_four(T* p, int64_t left, const float (&v)[kFour]) {
  if (left >= kFour) return store_four(p, v);
  for (int k = 0; k < left; ++k) p[k] = to_storage<T>(v[k]);
}

// max(v, 0) that keeps NaN, so that a diverging network cannot hide behind a ReLU.
__device__ inline float relu_of(float v) {
  return v < 0.0F ? 0.0F : v;
}

// Calls f(T()) with the type that `type` stands for.
template <typename F>
void with_storage(DataType type, F&& f) {
  if (type == DataType::kBfloat16) {
    f(__nv_bfloat16());
  } else {
    f(float());
  }
}

}  // namespace simclr
