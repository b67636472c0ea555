// What each device implements of relu. Not for users of the op.
#pragma once

#include "kernels/relu/relu.h"

namespace simclr::relu {

void forward(const CpuExec&, int64_t elements, const float* x, float* y, DataType type);
void backward(const CpuExec&, int64_t elements, const float* grad_y, const float* y, float* grad_x, DataType type);

void forward(const CudaExec&, int64_t elements, const float* x, float* y, DataType type);
void backward(const CudaExec&, int64_t elements, const float* grad_y, const float* y, float* grad_x, DataType type);

}  // namespace simclr::relu
