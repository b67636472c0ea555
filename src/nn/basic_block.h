// The basic block of ResNet-10, 18 and 34 (He et al. 2016):
//   h = relu(bn1(conv1(x)));   y = relu(bn2(conv2(h)) + shortcut(x))
// shortcut: identity, or bn(conv 1x1) where channels or size change. Names as torchvision's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/nn/activation_buffer.h"
#include "src/nn/batch_norm_layer.h"
#include "src/nn/conv_layer.h"

namespace simclr {

class BasicBlock {
 public:
  struct Shape {
    int64_t in = 0, out = 0, height = 0, width = 0, stride = 1;
  };
  BasicBlock(const LayerContext& lc, const std::string& name, const Shape& shape);

  // x [shards, 2n, in, H, W] must stay as it is until backward. Returns y, which lives in the block.
  ConstActivation forward(Mode mode, ConstActivation x);
  // gradients.current holds dL/dy on entry and dL/dx on return.
  void backward(ConstActivation x, GradientBuffers& gradients);

  const Parameter& first_parameter() { return conv1_.weight(); }

  void update_running_statistics(const int* skip);
  void initialize(uint64_t seed, bool zero_last_batch_norm);
  void want(GradientBuffers& gradients) const;
  double forward_flops() const;
  std::vector<const ConvLayer*> convolutions() const;  // in the order of the store

 private:
  struct Downsample {
    ConvLayer conv;
    BatchNormLayer bn;
    ActivationBuffer c, y;  // conv output, shortcut
  };
  Context* context_;
  ConvLayer conv1_;
  BatchNormLayer bn1_;
  ConvLayer conv2_;
  BatchNormLayer bn2_;
  ActivationBuffer c1_, h_, c2_, y_;  // conv1 out, after bn1+relu, conv2 out, block out: [shards, 2n, out, H', W']
  std::optional<Downsample> downsample_;
};

}  // namespace simclr
