#include "kernels/common/launch.cuh"
#include "kernels/common/ordered_tree.cuh"
#include "kernels/ordered_sum/ordered_sum.h"

namespace simclr::detail {
namespace {

// One element a thread.
template <typename T>
__global__ void sum_parts_kernel(const T* parts, int count, int64_t stride, int64_t elements, T* sum) {
  const int64_t step = thread_count();
  for (int64_t k = thread_index(); k < elements; k += step) {
    sum[k] = ordered_tree_value<T>([&](int i) { return parts[i * stride + k]; }, count);
  }
}

template <typename T>
void sum_parts(const CudaExec& exec, const T* parts, int64_t count, int64_t stride, int64_t elements, T* sum) {
  if (elements == 0) return;
  launch(exec, "ordered_sum", elementwise_grid(elements), sum_parts_kernel<T>, parts, tree_parts(count), stride,
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
