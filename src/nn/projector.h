// Projector: an MLP from the representation h [rows, D] to z [rows, C], used in training only.
//   layers - 1 times: linear, batch norm (then the linear has no bias), ReLU;   last: linear with bias.
// Names: projector.0.weight, projector.1.weight (batch norm), projector.3.weight, ... as in a torch.nn.Sequential.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

#include "src/nn/activation_buffer.h"
#include "src/nn/batch_norm_layer.h"

namespace simclr {

class Projector {
 public:
  // grad_h_read_at: the last op of backward that reads dL/dh.
  Projector(const LayerContext& lc, const ProjectorSettings& settings, int64_t in_features,
            ActivationArena::Moment grad_h_read_at);

  ConstMatrix forward(Mode mode, ConstMatrix h);
  // Returns dL/dh [rows, D], valid until grad_h_read_at. h is the input of the last forward.
  ConstMatrix backward(ConstMatrix h, ConstMatrix grad_z);

  const Parameter& first_parameter() const { return *layers_.front().weight; }

  void initialize(uint64_t seed);
  void update_running_statistics(const int* skip);
  double forward_flops() const;  // of this rank's shards

 private:
  struct Layer {
    int64_t in = 0, out = 0;
    Parameter* weight = nullptr;
    Parameter* bias = nullptr;  // null before a batch norm
    std::optional<BatchNormLayer> bn;
    bool relu = false;
    MatrixBuffer linear_out, activated;  // [rows, out]; activated only with relu. Backward: linear_out is overwritten
                                         // with its gradient
    MatrixBuffer grad_x;                 // [rows, in]
  };
  // Each calls its last argument, inside a span of the profile.
  template <typename Linear>
  void product(const Layer& layer, std::string_view op, Linear&& linear) const;
  template <typename Relu>
  void relu(const Layer& layer, std::string_view op, ConstMatrix y, Relu&& work) const;
  static ConstMatrix output(const Layer& layer) { return (layer.relu ? layer.activated : layer.linear_out).view(); }

  LayerContext lc_;
  std::deque<Layer> layers_;
};

}  // namespace simclr
