// Filters between the master weights and cuDNN: repacking, and the ordered sum of the shards' gradients on the way
// back.
#include <cuda_bf16.h>

#include "kernels/common/launch.cuh"
#include "kernels/conv2d/filter_layout.h"

namespace simclr::conv2d {
namespace {

constexpr int kMostLevels = 16;  // of the tree: 2^15 shards

__device__ inline void put(float* to, float value) {
  *to = value;
}
__device__ inline void put(__nv_bfloat16* to, float value) {
  *to = __float2bfloat16(value);
}
__device__ inline float get(float value) {
  return value;
}
__device__ inline float get(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

// One thread per stored element [k, r, s, c].
template <typename T>
__global__ void store_filter_kernel(FilterLayout f, const float* weight, T* stored) {
  for (int64_t at = thread_index(); at < f.stored_elements(); at += thread_count()) {
    const int64_t c = at % f.in_stored, place = at / f.in_stored;
    const int64_t tap = place % (f.kernel * f.kernel), k = place / (f.kernel * f.kernel);  // tap = r * kernel + s
    const bool padding = k >= f.out || c >= f.in;
    put(stored + at, padding ? 0.0F : weight[(k * f.in + c) * f.kernel * f.kernel + tap]);
  }
}

// One thread per weight [k, c, r, s].
template <typename T>
__global__ void sum_gradients_kernel(FilterLayout f, const T* parts, int64_t count, int64_t stride,
                                     float* grad_weight) {
  for (int64_t at = thread_index(); at < f.plain_elements(); at += thread_count()) {
    const int64_t tap = at % (f.kernel * f.kernel), place = at / (f.kernel * f.kernel);
    const int64_t c = place % f.in, k = place / f.in;
    const T* part = parts + (k * f.kernel * f.kernel + tap) * f.in_stored + c;
    // A binary counter: waiting[l] is the sum of 2^l neighboring shards whose sibling has not come yet.
    float waiting[kMostLevels];
    float sum = 0.0F;
    for (int64_t shard = 0; shard < count; ++shard, part += stride) {
      sum = get(*part);
      int level = 0;
      for (int64_t left = shard; left & 1; left >>= 1) sum = waiting[level++] + sum;
      waiting[level] = sum;
    }
    grad_weight[at] = sum;
  }
}

template <typename T>
void sum_gradients(const CudaExec& exec, const FilterLayout& layout, const void* parts, int64_t count, int64_t stride,
                   float* grad_weight) {
  launch(exec, "conv2d sum of filter gradients", elementwise_grid(layout.plain_elements()), sum_gradients_kernel<T>,
         layout, static_cast<const T*>(parts), count, stride, grad_weight);
}

template <typename T>
void store(const CudaExec& exec, const FilterLayout& layout, const float* weight, void* stored) {
  launch(exec, "conv2d filter", elementwise_grid(layout.stored_elements()), store_filter_kernel<T>, layout, weight,
         static_cast<T*>(stored));
}

}  // namespace

void store_filter(const CudaExec& exec, const FilterLayout& layout, const float* weight, void* stored) {
  if (exec.storage() == DataType::kBfloat16) return store<__nv_bfloat16>(exec, layout, weight, stored);
  store<float>(exec, layout, weight, stored);
}

void sum_stored_gradients(const CudaExec& exec, const FilterLayout& layout, const void* parts, int64_t count,
                          int64_t stride, float* grad_weight) {
  SIMCLR_CHECK(count > 0 && (count & (count - 1)) == 0 && count < (int64_t{1} << kMostLevels),
               "a tree over {} shards: not a power of two, or too many", count);
  if (exec.storage() == DataType::kBfloat16)
    return sum_gradients<__nv_bfloat16>(exec, layout, parts, count, stride, grad_weight);
  sum_gradients<float>(exec, layout, parts, count, stride, grad_weight);
}

}  // namespace simclr::conv2d
