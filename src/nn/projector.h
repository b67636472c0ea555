// Projector: an MLP from the representation h [rows, D] to z [rows, C], used in training only.
//   layers - 1 times: linear, batch norm (then the linear has no bias), ReLU;   last: linear with bias.
// Names: projector.0.weight, projector.1.weight (batch norm), projector.3.weight, ... as in a torch.nn.Sequential.
#pragma once

#include <deque>
#include <optional>

#include "src/nn/batch_norm_layer.h"

namespace simclr {

class Projector {
 public:
  Projector(const LayerContext& lc, const ProjectorSettings& settings, int64_t in_features);

  ConstMatrix forward(Mode mode, ConstMatrix h);
  // Returns dL/dh [rows, D], which lives in the projector. h is the input of the last forward.
  ConstMatrix backward(ConstMatrix h, ConstMatrix grad_z);

  const Parameter& first_parameter() const { return *layers_.front().weight; }

  void initialize(uint64_t seed);
  void update_running_statistics(const int* skip);
  double forward_flops() const;  // of this rank's shards

 private:
  struct Layer {
    int64_t in = 0, out = 0;
    Parameter* weight = nullptr;
    Parameter* bias = nullptr;  // none before a batch norm
    std::optional<BatchNormLayer> bn;
    bool relu = false;
    Buffer linear_out, activated;  // [rows, out]; activated only with relu
  };
  Matrix matrix(const Buffer& buffer, int64_t cols) const;
  ConstMatrix output(const Layer& layer) const {
    return matrix(layer.relu ? layer.activated : layer.linear_out, layer.out);
  }

  LayerContext lc_;
  std::deque<Layer> layers_;
  Buffer grad_a_, grad_b_;  // [rows, widest]
};

}  // namespace simclr
