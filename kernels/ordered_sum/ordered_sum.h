// The sum over shards or ranks in the one order (common/ordered_tree.h), on the memory of the device.
//   sum[k] = ((p0[k]+p1[k])+(p2[k]+p3[k]))+((p4[k]+p5[k])+...),   p_i = parts + i * stride,   k in 0..elements-1
#pragma once

#include <cstdint>

#include "kernels/common/exec.h"

namespace simclr {

// count is a power of two; sum may be parts (its first part), else it overlaps nothing. The parts may be destroyed.
// Synchronous on the CPU. No scratch.
void ordered_sum(const Exec& exec, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum);
void ordered_sum(const Exec& exec, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum);

// One overload per device; shapes are checked already.
namespace detail {
void ordered_sum(const CpuExec&, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum);
void ordered_sum(const CpuExec&, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum);
void ordered_sum(const CudaExec&, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum);
void ordered_sum(const CudaExec&, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum);
}  // namespace detail

}  // namespace simclr
