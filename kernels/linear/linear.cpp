// Shape checks of linear, once for all devices, then dispatch on Exec.
#include "kernels/linear/linear.h"

#include "kernels/linear/linear_device.h"

namespace simclr {
namespace {

void check(int64_t shards, const ConstMatrix& x, const ConstMatrix& y) {
  SIMCLR_CHECK(shards > 0 && x.rows > 0 && x.rows == y.rows && x.rows % shards == 0 && x.type() == y.type(),
               "linear: {} and {} rows in {} shards", x.rows, y.rows, shards);
  SIMCLR_CHECK(x.cols > 0 && y.cols > 0 && x.stride >= x.cols && y.stride >= y.cols, "linear: bad matrix width");
}

}  // namespace

ScratchNeed linear_scratch(int64_t shards, int64_t in, int64_t out) {
  return {.workspace_bytes = bytes_of<float>(shards * linear_part_stride(in, out))};
}

void linear_forward(const Exec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y) {
  check(shards, x, y);
  std::visit([&](const auto& device) { linear::forward(device, shards, x, weight, bias, y); }, exec);
}

void linear_backward_data(const Exec& exec, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x) {
  check(shards, grad_x, grad_y);
  std::visit([&](const auto& device) { linear::backward_data(device, shards, grad_y, weight, grad_x); }, exec);
}

void linear_backward_weights(const Exec& exec, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                             float* grad_bias) {
  check(shards, x, grad_y);
  std::visit([&](const auto& device) { linear::backward_weights(device, shards, x, grad_y, grad_weight, grad_bias); },
             exec);
}

}  // namespace simclr
