// ResNet encoder of four stages; the 3x3 convolutions of stage k have width * 2^k channels. Basic blocks: depth 10 (one
// a stage), 18 (two), 34 (3, 4, 6, 3); bottlenecks: depth 50 (3, 4, 6, 3). Stem `cifar`: 3x3 stride 1, no pooling
// (SimCLR, appendix B.9); `imagenet`: 7x7 stride 2, then 3x3 max pooling stride 2.
// Output: global average of the last maps, h [rows, 8 * width], of bottlenecks [rows, 32 * width].
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "src/nn/residual_block.h"

namespace simclr {

// Blocks in each stage; throws Error(kUsage) for a depth that is not in the table.
std::vector<int> resnet_blocks(int depth);

class ResNet {
 public:
  ResNet(const LayerContext& lc, const EncoderSettings& settings, int64_t image_size);

  int64_t out_features() const { return out_features_; }
  // x [shards, 2n, 3, size, size] must not change until backward. Returns h [shards*2n, D], stride padded_cols(D).
  // between: called after the stem and after each block.
  ConstMatrix forward(Mode mode, ConstImages x, const BetweenLayers& between = nothing_between);
  // grad_h [shards*2n, D]. Calls ready after each block, from the last to the first, and after the stem.
  void backward(ConstMatrix grad_h, const GradientsReady& ready);

  void initialize(uint64_t seed);
  void update_running_statistics(const int* skip);
  double forward_flops() const;  // of this rank's shards, convolutions only
  // "conv1.weight: …; layer1.0.conv1.weight: …": the plan of each convolution, by name (Conv2dPlan::choice).
  std::string describe_plans() const;
  // The op of backward that reads grad_h; grad_h must be valid until then.
  ActivationArena::Moment grad_h_read_at() const { return ActivationArena::backward_of(average_moment_); }

 private:
  LayerContext lc_;
  EncoderSettings settings_;
  ConvLayer conv1_;
  BatchNormLayer bn1_;
  ActivationBuffer c1_, h1_, pooled_;  // of the stem; in backward c1_ is overwritten with its gradient
  ActivationBuffer grad_h1_;           // with pooling only
  Buffer pool_winners_;
  std::deque<ResidualBlock> blocks_;
  std::vector<ActivationBuffer> grads_;  // dL/d(input of each block), then dL/d(output of the last)
  ActivationArena::Moment average_moment_ = 0;
  int64_t out_features_;
  MatrixBuffer features_;
  // Of the last forward, for backward.
  ConstImages images_;
  std::vector<ConstActivation> block_inputs_;
};

}  // namespace simclr
