#include "kernels/relu/relu.h"

#include "kernels/relu/relu_device.h"

namespace simclr {

void relu_forward(const Exec& exec, int64_t elements, const float* x, float* y, DataType type) {
  SIMCLR_CHECK(elements >= 0, "relu over {} elements", elements);
  std::visit([&](const auto& device) { relu::forward(device, elements, x, y, type); }, exec);
}

void relu_backward(const Exec& exec, int64_t elements, const float* grad_y, const float* y, float* grad_x,
                   DataType type) {
  SIMCLR_CHECK(elements >= 0, "relu over {} elements", elements);
  std::visit([&](const auto& device) { relu::backward(device, elements, grad_y, y, grad_x, type); }, exec);
}

}  // namespace simclr
