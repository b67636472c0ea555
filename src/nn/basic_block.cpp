#include "src/nn/basic_block.h"

#include "kernels/add/add.h"
#include "src/nn/initializer.h"

namespace simclr {

BasicBlock::BasicBlock(const LayerContext& lc, const std::string& name, const Shape& s)
    : context_(&lc.context),
      conv1_(lc, name + ".conv1", {.in = s.in, .out = s.out, .height = s.height, .width = s.width, .stride = s.stride}),
      bn1_(lc, name + ".bn1", s.out, conv1_.out_height(), conv1_.out_width()),
      conv2_(lc, name + ".conv2",
             {.in = s.out, .out = s.out, .height = conv1_.out_height(), .width = conv1_.out_width()}),
      bn2_(lc, name + ".bn2", s.out, conv1_.out_height(), conv1_.out_width()) {
  const int64_t h = conv1_.out_height(), w = conv1_.out_width();
  for (ActivationBuffer* b : {&c1_, &h_, &c2_, &y_}) *b = ActivationBuffer(lc, s.out, h, w);
  if (s.stride != 1 || s.in != s.out) {
    downsample_.emplace(Downsample{ConvLayer(lc, name + ".downsample.0",
                                             {.in = s.in,
                                              .out = s.out,
                                              .height = s.height,
                                              .width = s.width,
                                              .kernel = 1,
                                              .stride = s.stride,
                                              .padding = 0}),
                                   BatchNormLayer(lc, name + ".downsample.1", s.out, h, w),
                                   ActivationBuffer(lc, s.out, h, w), ActivationBuffer(lc, s.out, h, w)});
  }
}

ConstActivation BasicBlock::forward(Mode mode, ConstActivation x) {
  conv1_.forward(x, c1_.view());
  bn1_.forward(mode, c1_.view(), {.relu = true}, h_.view());
  conv2_.forward(ConstActivation(h_.view()), c2_.view());
  const float* shortcut = x.data;
  if (downsample_) {
    downsample_->conv.forward(x, downsample_->c.view());
    downsample_->bn.forward(mode, downsample_->c.view(), {}, downsample_->y.view());
    shortcut = downsample_->y.view().data;
  }
  bn2_.forward(mode, c2_.view(), {.relu = true, .residual = shortcut}, y_.view());
  return y_.view();
}

void BasicBlock::backward(ConstActivation x, GradientBuffers& gradients) {
  const Activation y = y_.view();
  const Activation x_shape{nullptr, x.shards, x.samples, x.channels, x.height, x.width, x.type};
  const Activation grad_y = gradients.current(y);  // after bn2: dL/d(sum before the last relu)
  const Activation grad_c = gradients.second(y);   // gradient of a convolution's output
  const Activation grad_h = gradients.third(y);
  const Activation grad_x = gradients.third(x_shape);

  // y = relu(bn2(c2) + shortcut)
  bn2_.backward(grad_y, c2_.view(), y.data, grad_y.data, grad_c);
  // c2 = conv2(h)
  conv2_.backward_weights(ConstActivation(h_.view()), grad_c);
  conv2_.backward_data(grad_c, grad_h);
  // h = relu(bn1(c1))
  bn1_.backward(grad_h, c1_.view(), h_.view().data, nullptr, grad_c);
  // c1 = conv1(x)
  conv1_.backward_weights(x, grad_c);
  conv1_.backward_data(grad_c, grad_x);
  // shortcut = x, or bn(conv(x))
  if (downsample_) {
    downsample_->bn.backward(grad_y, downsample_->c.view(), nullptr, nullptr, grad_c);
    downsample_->conv.backward_weights(x, grad_c);
    const Activation grad_shortcut = gradients.current(x_shape);  // dL/dy is used up
    downsample_->conv.backward_data(grad_c, grad_shortcut);
    add_to(context_->exec(), grad_x.elements(), grad_shortcut.data, grad_x.data, x.type);
  } else {
    add_to(context_->exec(), grad_x.elements(), grad_y.data, grad_x.data, x.type);
  }
  gradients.make_third_current();
}

void BasicBlock::update_running_statistics(const int* skip) {
  bn1_.update_running_statistics(skip);
  bn2_.update_running_statistics(skip);
  if (downsample_) downsample_->bn.update_running_statistics(skip);
}

void BasicBlock::initialize(uint64_t seed, bool zero_last_batch_norm) {
  Device& device = context_->device();
  initialize_kaiming_normal(device, conv1_.weight(), seed);
  initialize_kaiming_normal(device, conv2_.weight(), seed);
  bn1_.initialize(1.0F);
  bn2_.initialize(zero_last_batch_norm ? 0.0F : 1.0F);
  if (downsample_) {
    initialize_kaiming_normal(device, downsample_->conv.weight(), seed);
    downsample_->bn.initialize(1.0F);
  }
}

void BasicBlock::want(GradientBuffers& gradients) const {
  gradients.want(y_.view());
}

std::vector<const ConvLayer*> BasicBlock::convolutions() const {
  std::vector<const ConvLayer*> all = {&conv1_, &conv2_};
  if (downsample_) all.push_back(&downsample_->conv);
  return all;
}

double BasicBlock::forward_flops() const {
  return conv1_.plan().params().forward_flops() + conv2_.plan().params().forward_flops() +
         (downsample_ ? downsample_->conv.plan().params().forward_flops() : 0.0);
}

}  // namespace simclr
