// What each device implements of pool. Not for users of the op.
#pragma once

#include "kernels/pool/pool.h"

namespace simclr::pool {

void average_forward(const CpuExec&, ConstActivation x, Matrix y);
void average_backward(const CpuExec&, ConstMatrix grad_y, Activation grad_x);
void max_forward(const CpuExec&, ConstActivation x, Activation y, uint8_t* winners);
void max_backward(const CpuExec&, ConstActivation grad_y, const uint8_t* winners, Activation grad_x);

void average_forward(const CudaExec&, ConstActivation x, Matrix y);
void average_backward(const CudaExec&, ConstMatrix grad_y, Activation grad_x);
void max_forward(const CudaExec&, ConstActivation x, Activation y, uint8_t* winners);
void max_backward(const CudaExec&, ConstActivation grad_y, const uint8_t* winners, Activation grad_x);

}  // namespace simclr::pool
