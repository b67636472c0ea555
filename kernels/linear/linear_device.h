// What each device implements of linear; called after the shapes have been checked. Not for users of the op.
#pragma once

#include "kernels/linear/linear.h"

namespace simclr::linear {

void forward(const CpuExec&, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y);
void backward_data(const CpuExec&, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x);
void backward_weights(const CpuExec&, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                      float* grad_bias);

void forward(const CudaExec&, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y);
void backward_data(const CudaExec&, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x);
void backward_weights(const CudaExec&, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                      float* grad_bias);

}  // namespace simclr::linear
