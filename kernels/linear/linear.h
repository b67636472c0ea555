// Fully connected layer over the shards of a rank.
//   y = x W^T [+ b];   grad_x = grad_y W;   grad_W = grad_y^T x;   grad_b = sum over rows of grad_y
// Shapes: x [shards*samples, in], y [shards*samples, out], W [out, in] plain row-major float32 as in torchvision, b
// [out]. Bits: one product per shard, of one shape for every number of ranks; weight gradients are summed over the
// rank's shards by the ordered tree. Columns of y and grad_x beyond the matrix width are set to zero. Aliasing: none
// allowed. Synchronous on the CPU. Needs linear_scratch().
// The views' type is that of both factors (W is rounded to it first), sums are fp32; tf32 on CUDA as the Exec says.
#pragma once

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

ScratchNeed linear_scratch(int64_t shards, int64_t in, int64_t out);
// Elements from one shard's part of the weight and bias gradient to the next: whole multiples of 256 bytes.
inline int64_t linear_part_stride(int64_t in, int64_t out) {
  return round_up(out * in + out, 64);
}

// bias may be null.
void linear_forward(const Exec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y);
void linear_backward_data(const Exec& exec, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x);
// grad_weight [out, in] and grad_bias [out] (may be null): this rank's part of the ordered sum; overwritten.
void linear_backward_weights(const Exec& exec, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                             float* grad_bias);

}  // namespace simclr
