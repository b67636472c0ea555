// What the tests of conv2d share: random inputs of a shape, and the three convolutions run on them.
#pragma once

#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/kernel_support.h"

namespace simclr::test {

inline Shape input_shape(const Conv2dParams& p) {
  return {p.shards, p.samples, p.in_channels, p.height, p.width};
}
inline Shape output_shape(const Conv2dParams& p) {
  return {p.shards, p.samples, p.out_channels, p.out_height(), p.out_width()};
}

struct Inputs {
  std::vector<float> x, weight, grad_y;  // plain NCHW, OIHW, NCHW
};
inline Inputs random_inputs(const Conv2dParams& p) {
  return {random_values(input_shape(p).elements(), 1), random_values(p.weight_elements(), 2),
          random_values(output_shape(p).elements(), 3)};
}

struct Results {
  std::vector<float> y, grad_x, grad_weight;  // plain; grad_x is empty for images
};

// All three convolutions on outputs and scratch full of NaN, with the algorithms of `choice` where that is given.
// Maps: FeatureMaps, or those of bfloat16_support.h.
template <typename Maps = FeatureMaps>
Results run(const Conv2dParams& p, int threads, const Inputs& in, const std::string& choice = {}) {
  const Exec any = CpuExec{.threads = threads, .precision = Maps::kPrecision};
  const auto plan = make_conv2d_plan(any, p, choice);
  const PoisonedContext context(threads, plan->scratch(), Maps::kPrecision);
  const Exec& exec = context.exec();
  Maps y(output_shape(p));
  const Maps grad_y(output_shape(p), in.grad_y);
  Results out;
  out.grad_weight.assign(p.weight_elements(), kNaN);
  if (p.input_is_images) {
    const ConstImages x{in.x.data(), p.shards, p.samples, p.in_channels, p.height, p.width};
    conv2d_forward(exec, *plan, x, in.weight.data(), y.view());
    conv2d_backward_weights(exec, *plan, x, grad_y.view(), out.grad_weight.data());
  } else {
    const Maps x(input_shape(p), in.x);
    Maps grad_x(input_shape(p));
    conv2d_forward(exec, *plan, x.view(), in.weight.data(), y.view());
    conv2d_backward_data(exec, *plan, grad_y.view(), in.weight.data(), grad_x.view());
    conv2d_backward_weights(exec, *plan, x.view(), grad_y.view(), out.grad_weight.data());
    EXPECT_TRUE(grad_x.padding_is_zero());
    out.grad_x = grad_x.plain();
  }
  EXPECT_TRUE(y.padding_is_zero());
  out.y = y.plain();
  return out;
}

inline std::string case_name(const testing::TestParamInfo<Conv2dParams>& info) {
  const auto& p = info.param;
  return fmt::format("k{}s{}p{}_{}to{}_{}x{}_{}shards_of{}", p.kernel, p.stride, p.padding, p.in_channels,
                     p.out_channels, p.height, p.width, p.shards, p.samples);
}

}  // namespace simclr::test
