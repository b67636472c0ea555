// What each device implements of pool; called after the shapes have been checked. Not for users of the op.
#pragma once

#include "kernels/pool/pool.h"

namespace simclr::pool {

// Place (u, v) of a 3x3 window, as `winners` has it.
constexpr uint8_t place_in_window(int u, int v) {
  return static_cast<uint8_t>(u * 3 + v);
}

void average_forward(const CpuExec&, ConstActivation x, Matrix y);
void average_backward(const CpuExec&, ConstMatrix grad_y, Activation grad_x);
void max_forward(const CpuExec&, ConstActivation x, Activation y, uint8_t* winners);
void max_backward(const CpuExec&, ConstActivation grad_y, const uint8_t* winners, Activation grad_x);

void average_forward(const CudaExec&, ConstActivation x, Matrix y);
void average_backward(const CudaExec&, ConstMatrix grad_y, Activation grad_x);
void max_forward(const CudaExec&, ConstActivation x, Activation y, uint8_t* winners);
void max_backward(const CudaExec&, ConstActivation grad_y, const uint8_t* winners, Activation grad_x);

}  // namespace simclr::pool
