// The two blocks of ResNets (He et al. 2016): rows of convolution and batch norm, and a shortcut.
//   basic (10, 18, 34):  h = relu(bn1(conv1(x)));  y = relu(bn2(conv2(h)) + shortcut(x))     3x3, 3x3
//   bottleneck (50):     one more row between them, y of 4 times the width                   1x1, 3x3, 1x1
// The first 3x3 convolution has the stride, in a bottleneck too (ResNet v1.5, as torchvision).
// shortcut: identity, or bn(conv 1x1) where channels or size change. Names are torchvision's.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "src/nn/activation_buffer.h"
#include "src/nn/batch_norm_layer.h"
#include "src/nn/conv_layer.h"

namespace simclr {

class ResidualBlock {
 public:
  enum class Kind { kBasic, kBottleneck };
  struct Shape {
    Kind kind = Kind::kBasic;
    int64_t in = 0, planes = 0, height = 0, width = 0, stride = 1;  // planes: channels of the 3x3 convolutions

    int64_t out() const { return kind == Kind::kBasic ? planes : 4 * planes; }
  };
  ResidualBlock(const LayerContext& lc, const std::string& name, const Shape& shape);

  // x [shards, 2n, in, H, W] must not change until backward. Returns y [shards, 2n, out, H', W'] in the block's own
  // memory, valid until finished_at().
  ConstActivation forward(Mode mode, ConstActivation x);
  // grad_y = dL/dy is overwritten; grad_x = dL/dx. Once per forward: the feature maps are overwritten, too.
  void backward(ConstActivation x, Activation grad_y, Activation grad_x);
  // The first op of backward that writes grad_x, and the last that reads grad_y.
  ActivationArena::Moment grad_x_begins_at() const { return ActivationArena::backward_of(rows_.front().conv_moment); }
  ActivationArena::Moment finished_at() const { return ActivationArena::backward_of(shortcut_moment_); }

  const Parameter& first_parameter() { return rows_.front().conv.weight(); }

  void update_running_statistics(const int* skip);
  void initialize(uint64_t seed, bool zero_last_batch_norm);
  double forward_flops() const;
  std::vector<const ConvLayer*> convolutions() const;  // in the order of the store

 private:
  struct Row {
    ConvLayer conv;
    BatchNormLayer bn;
    ActivationBuffer c;       // the convolution's output; in backward overwritten with its gradient
    ActivationBuffer y;       // the row's output, after bn and ReLU; the shortcut uses the y of the block's last row
    ActivationBuffer grad_y;  // dL/dy; unused in the last row and the shortcut, where the caller provides it
    ActivationArena::Moment conv_moment = 0, bn_moment = 0;
  };
  static Row make_row(const LayerContext& lc, const std::string& conv, const std::string& bn, const ConvShape& shape);
  // Returns x's data, or bn(conv(x)) written into y.
  ConstElements shortcut(Mode mode, ConstActivation x, Activation y);
  void add_shortcut(ConstActivation grad_shortcut, Activation grad_x) const;  // grad_x += grad_shortcut

  Context* context_;
  std::deque<Row> rows_;
  std::optional<Row> downsample_;
  ActivationBuffer grad_shortcut_;  // dL/dx by way of downsample_
  ActivationArena::Moment shortcut_moment_ = 0;
};

}  // namespace simclr
