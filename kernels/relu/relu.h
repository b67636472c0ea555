// y = max(x, 0), NaN kept; grad_x = grad_y where y > 0, else 0. For places where no batch norm stands before it (there
// it is fused). Element by element over `elements` values stored as `type`; y may be x, grad_x may be grad_y.
#pragma once

#include "kernels/common/exec.h"

namespace simclr {

void relu_forward(const Exec& exec, int64_t elements, const float* x, float* y, DataType type = DataType::kFloat32);
void relu_backward(const Exec& exec, int64_t elements, const float* grad_y, const float* y, float* grad_x,
                   DataType type = DataType::kFloat32);

}  // namespace simclr
