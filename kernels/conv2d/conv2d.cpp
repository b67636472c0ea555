// Shape checks of conv2d, once for all devices, then dispatch on Exec.
#include "kernels/conv2d/conv2d.h"

#include "kernels/conv2d/conv2d_device.h"

namespace simclr {
namespace {

template <typename View>
void check_input(const Conv2dParams& p, const View& x, bool images) {
  SIMCLR_CHECK(p.input_is_images == images, "the plan was made for {}", p.input_is_images ? "images" : "feature maps");
  SIMCLR_CHECK(x.shards == p.shards && x.samples == p.samples && x.channels == p.in_channels && x.height == p.height &&
                   x.width == p.width,
               "x is [{}, {}, {}, {}, {}], the plan expects [{}, {}, {}, {}, {}]", x.shards, x.samples, x.channels,
               x.height, x.width, p.shards, p.samples, p.in_channels, p.height, p.width);
}

void check_output(const Conv2dParams& p, const ConstActivation& y) {
  SIMCLR_CHECK(y.shards == p.shards && y.samples == p.samples && y.channels == p.out_channels &&
                   y.height == p.out_height() && y.width == p.out_width(),
               "y is [{}, {}, {}, {}, {}], the plan expects [{}, {}, {}, {}, {}]", y.shards, y.samples, y.channels,
               y.height, y.width, p.shards, p.samples, p.out_channels, p.out_height(), p.out_width());
}

// Views hold what the device stores, as it stores it; images are float32 on the CPU.
template <typename View>
void check_storage(const Exec& exec, const View& x, bool images, const ConstActivation& y) {
  const DataType stored = storage_of(exec);
  const DataType expected = images && std::holds_alternative<CpuExec>(exec) ? DataType::kFloat32 : stored;
  SIMCLR_CHECK(x.type() == expected && y.type() == stored,
               "maps of {} and {} bytes an element, the device stores {} and {}", size_of(x.type()), size_of(y.type()),
               size_of(expected), size_of(stored));
  SIMCLR_CHECK(x.is_in(images ? image_layout_of(exec) : layout_of(exec)) && y.is_in(layout_of(exec)),
               "maps in another layout than the device's");
}

template <typename View>
void forward(const Exec& exec, const Conv2dPlan& plan, const View& x, bool images, const float* weight, Activation y) {
  check_input(plan.params(), x, images);
  check_output(plan.params(), y);
  check_storage(exec, x, images, y);
  std::visit([&](const auto& device) { conv2d::forward(device, plan, x.data, weight, y.data); }, exec);
}

template <typename View>
void backward_weights(const Exec& exec, const Conv2dPlan& plan, const View& x, bool images, ConstActivation grad_y,
                      float* grad_weight) {
  check_input(plan.params(), x, images);
  check_output(plan.params(), grad_y);
  check_storage(exec, x, images, grad_y);
  std::visit([&](const auto& device) { conv2d::backward_weights(device, plan, x.data, grad_y.data, grad_weight); },
             exec);
}

}  // namespace

double Conv2dParams::forward_flops() const {
  return 2.0 * as_double(shards * samples) * as_double(weight_elements()) * as_double(out_height() * out_width());
}

std::unique_ptr<Conv2dPlan> make_conv2d_plan(const Exec& exec, const Conv2dParams& p, const std::string& choice) {
  SIMCLR_CHECK(p.shards > 0 && p.samples > 0 && p.in_channels > 0 && p.out_channels > 0 && p.kernel > 0 &&
                   p.stride > 0 && p.padding >= 0,
               "convolution of an empty shape");
  SIMCLR_CHECK(p.height + 2 * p.padding >= p.kernel && p.width + 2 * p.padding >= p.kernel,
               "kernel {} is larger than the padded input {}x{}", p.kernel, p.height, p.width);
  return std::visit([&](const auto& device) { return conv2d::make_plan(device, p, choice); }, exec);
}

void conv2d_forward(const Exec& exec, const Conv2dPlan& plan, ConstActivation x, const float* weight, Activation y) {
  forward(exec, plan, x, false, weight, y);
}

void conv2d_forward(const Exec& exec, const Conv2dPlan& plan, ConstImages x, const float* weight, Activation y) {
  forward(exec, plan, x, true, weight, y);
}

void conv2d_backward_data(const Exec& exec, const Conv2dPlan& plan, ConstActivation grad_y, const float* weight,
                          Activation grad_x) {
  check_output(plan.params(), grad_y);
  check_input(plan.params(), grad_x, false);
  check_storage(exec, grad_x, false, grad_y);
  std::visit([&](const auto& device) { conv2d::backward_data(device, plan, grad_y.data, weight, grad_x.data); }, exec);
}

void conv2d_backward_weights(const Exec& exec, const Conv2dPlan& plan, ConstActivation x, ConstActivation grad_y,
                             float* grad_weight) {
  backward_weights(exec, plan, x, false, grad_y, grad_weight);
}

void conv2d_backward_weights(const Exec& exec, const Conv2dPlan& plan, ConstImages x, ConstActivation grad_y,
                             float* grad_weight) {
  backward_weights(exec, plan, x, true, grad_y, grad_weight);
}

}  // namespace simclr
