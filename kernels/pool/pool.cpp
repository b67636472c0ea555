// Shape checks of pool, once for all devices, then dispatch on Exec.
#include "kernels/pool/pool.h"

#include "kernels/pool/pool_device.h"

namespace simclr {
namespace {

template <typename A, typename B>
void check_average(const Exec& exec, const A& x, const B& y) {
  SIMCLR_CHECK(x.is_in(layout_of(exec)), "average pool of maps in another layout than the device's");
  SIMCLR_CHECK(
      y.rows == x.shards * x.samples && y.cols == x.channels && y.stride == x.padded_channels() && y.type() == x.type(),
      "average pool: matrix [{}, {}] for {} samples of {} channels", y.rows, y.cols, x.shards * x.samples, x.channels);
}

template <typename A, typename B>
void check_max(const Exec& exec, const A& x, const B& y) {
  SIMCLR_CHECK(x.is_in(layout_of(exec)) && y.is_in(layout_of(exec)),
               "max pool of maps in another layout than the device's");
  SIMCLR_CHECK(x.shards == y.shards && x.samples == y.samples && x.channels == y.channels &&
                   y.height == max_pool_out(x.height) && y.width == max_pool_out(x.width) && y.type() == x.type(),
               "max pool: {}x{} to {}x{}", x.height, x.width, y.height, y.width);
}

}  // namespace

void global_average_pool_forward(const Exec& exec, ConstActivation x, Matrix y) {
  check_average(exec, x, y);
  std::visit([&](const auto& device) { pool::average_forward(device, x, y); }, exec);
}

void global_average_pool_backward(const Exec& exec, ConstMatrix grad_y, Activation grad_x) {
  check_average(exec, grad_x, grad_y);
  std::visit([&](const auto& device) { pool::average_backward(device, grad_y, grad_x); }, exec);
}

void max_pool_forward(const Exec& exec, ConstActivation x, Activation y, uint8_t* winners) {
  check_max(exec, x, y);
  std::visit([&](const auto& device) { pool::max_forward(device, x, y, winners); }, exec);
}

void max_pool_backward(const Exec& exec, ConstActivation grad_y, const uint8_t* winners, Activation grad_x) {
  check_max(exec, grad_x, grad_y);
  std::visit([&](const auto& device) { pool::max_backward(device, grad_y, winners, grad_x); }, exec);
}

}  // namespace simclr
