#include "kernels/common/launch.cuh"
#include "kernels/ordered_sum/ordered_sum.h"

namespace simclr::detail {
namespace {

constexpr int kMostParts = 64;

// One element: its parts in registers, added as the balanced tree adds them.
template <typename T>
__global__ void sum_parts_kernel(const T* parts, int count, int64_t stride, int64_t elements, T* sum) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < elements; k += step) {
    // A binary counter: level l holds the sum of 2^l neighbouring parts that waits for its sibling.
    T waiting[7] = {};  // log2(kMostParts) + 1
    T value = 0;
    for (int i = 0; i < count; ++i) {
      value = parts[i * stride + k];
      int level = 0;
      for (int left = i; left & 1; left >>= 1) value = waiting[level++] + value;
      waiting[level] = value;
    }
    sum[k] = value;
  }
}

template <typename T>
void sum_parts(const CudaExec& exec, const T* parts, int64_t count, int64_t stride, int64_t elements, T* sum) {
  SIMCLR_CHECK(count <= kMostParts, "a sum of {} parts, at most {}", count, kMostParts);
  if (elements == 0) return;
  launch(exec, "ordered_sum", elementwise_grid(elements), sum_parts_kernel<T>, parts, static_cast<int>(count), stride,
         elements, sum);
}

}  // namespace

void ordered_sum(const CudaExec& exec, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum) {
  sum_parts(exec, parts, count, stride, elements, sum);
}

void ordered_sum(const CudaExec& exec, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum) {
  sum_parts(exec, parts, count, stride, elements, sum);
}

}  // namespace simclr::detail
