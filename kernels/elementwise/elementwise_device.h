// What each device implements of elementwise; called after the arguments have been checked. Not for users of the op.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace simclr::elementwise {

void add_to(const CpuExec&, int64_t elements, ConstElements part, Elements total);
void relu_forward(const CpuExec&, int64_t elements, ConstElements x, Elements y);
void relu_backward(const CpuExec&, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x);

void add_to(const CudaExec&, int64_t elements, ConstElements part, Elements total);
void relu_forward(const CudaExec&, int64_t elements, ConstElements x, Elements y);
void relu_backward(const CudaExec&, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x);

}  // namespace simclr::elementwise
