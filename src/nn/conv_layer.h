// A convolution with its weight: the op kernels/conv2d bound to a parameter. No bias: batch norm follows.
#pragma once

#include <memory>
#include <string>

#include "kernels/conv2d/conv2d.h"
#include "src/nn/layer_context.h"

namespace simclr {

struct ConvShape {
  int64_t in = 0, out = 0, height = 0, width = 0, kernel = 3, stride = 1, padding = 1;
  bool input_is_images = false;
};

class ConvLayer {
 public:
  ConvLayer(const LayerContext& lc, const std::string& name, const ConvShape& shape);

  const Conv2dPlan& plan() const { return *plan_; }
  Parameter& weight() { return *weight_; }
  const Parameter& weight() const { return *weight_; }
  int64_t out_height() const { return plan_->params().out_height(); }
  int64_t out_width() const { return plan_->params().out_width(); }

  template <typename Input>  // ConstImages or ConstActivation
  void forward(const Input& x, Activation y) const {
    const ProfileSpan span(context_->profiler(), named("forward"), [&] { return work(x, y); });
    conv2d_forward(context_->exec(), *plan_, x, weight_->value, y);
  }
  // weight.grad = this rank's part of dL/dw.
  template <typename Input>
  void backward_weights(const Input& x, ConstActivation grad_y) const {
    const ProfileSpan span(context_->profiler(), named("backward weights"), [&] { return work(x, grad_y); });
    conv2d_backward_weights(context_->exec(), *plan_, x, grad_y, weight_->grad);
  }
  void backward_data(ConstActivation grad_y, Activation grad_x) const {
    const ProfileSpan span(context_->profiler(), named("backward data"), [&] { return work(grad_x, grad_y); });
    conv2d_backward_data(context_->exec(), *plan_, grad_y, weight_->value, grad_x);
  }

 private:
  OpName named(std::string_view op) const {
    return {.kind = OpKind::kConvolution, .layer = layer_of(*weight_), .op = op};
  }
  // The same in all three passes: each reads two of input, weights and output and writes the third.
  template <typename Input>
  Work work(const Input& x, ConstActivation y) const {
    return {.flops = plan_->params().forward_flops(),
            .bytes = bytes_of(x) + bytes_of(y) + sizeof(float) * as_double(weight_->elements)};
  }

  Context* context_;
  Parameter* weight_;
  std::unique_ptr<Conv2dPlan> plan_;
};

}  // namespace simclr
