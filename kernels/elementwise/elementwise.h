// Element by element over `elements` values, all stored as the same type:
//   add_to        total += part, where two paths of the network meet in backward; one rounding of the sum
//   relu_forward  y = max(x, 0), NaN kept
//   relu_backward grad_x = grad_y where y > 0, else 0
// ReLU here is for places without a batch norm before it (there it is fused).
// Aliasing: y may be x, grad_x may be grad_y or y; part and total do not overlap. Synchronous on the CPU.
#pragma once

#include "kernels/common/elements.h"
#include "kernels/common/exec.h"

namespace simclr {

void add_to(const Exec& exec, int64_t elements, ConstElements part, Elements total);
void relu_forward(const Exec& exec, int64_t elements, ConstElements x, Elements y);
void relu_backward(const Exec& exec, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x);

}  // namespace simclr
