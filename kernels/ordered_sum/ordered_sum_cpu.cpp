#include <algorithm>

#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/ordered_sum/ordered_sum.h"

namespace simclr::detail {
namespace {

constexpr int64_t kChunk = 4096;  // elements of one task

template <typename T>
void sum_parts(const CpuExec& exec, T* parts, int64_t count, int64_t stride, int64_t elements, T* sum) {
  parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kChunk, end = std::min(elements, begin + kChunk);
    ordered_tree_sum<T>([&](int64_t i) { return parts + i * stride; }, count, begin, end);
    if (sum != parts) std::copy(parts + begin, parts + end, sum + begin);
  });
}

}  // namespace

void ordered_sum(const CpuExec& exec, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum) {
  sum_parts(exec, parts, count, stride, elements, sum);
}

void ordered_sum(const CpuExec& exec, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum) {
  sum_parts(exec, parts, count, stride, elements, sum);
}

}  // namespace simclr::detail
