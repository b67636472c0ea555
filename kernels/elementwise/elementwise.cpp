// Checks of elementwise, once for all devices, then dispatch on Exec.
#include "kernels/elementwise/elementwise.h"

#include "kernels/elementwise/elementwise_device.h"

namespace simclr {

void add_to(const Exec& exec, int64_t elements, ConstElements part, Elements total) {
  SIMCLR_CHECK(elements >= 0 && part != ConstElements(total), "add of {} elements", elements);
  std::visit([&](const auto& device) { elementwise::add_to(device, elements, part, total); }, exec);
}

void relu_forward(const Exec& exec, int64_t elements, ConstElements x, Elements y) {
  SIMCLR_CHECK(elements >= 0, "relu over {} elements", elements);
  std::visit([&](const auto& device) { elementwise::relu_forward(device, elements, x, y); }, exec);
}

void relu_backward(const Exec& exec, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x) {
  SIMCLR_CHECK(elements >= 0, "relu over {} elements", elements);
  std::visit([&](const auto& device) { elementwise::relu_backward(device, elements, grad_y, y, grad_x); }, exec);
}

}  // namespace simclr
