// Feature maps that a layer keeps for backward.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/common/views.h"
#include "src/nn/layer_context.h"

namespace simclr {

class ActivationBuffer {
 public:
  ActivationBuffer() = default;
  ActivationBuffer(const LayerContext& lc, int64_t channels, int64_t height, int64_t width)
      : view_{nullptr, lc.geometry.local_shards,     lc.geometry.samples(), channels, height,
              width,   lc.context.device().storage()},
        memory_(lc.context.allocate_storage(view_.elements())) {
    view_.data = memory_.as<float>().data();
  }
  Activation view() const { return view_; }

 private:
  Activation view_;
  Buffer memory_;
};

// Gradients of feature maps in backward: three runs of memory, each as large as the largest maps of the network, used
// in turn. A block reads its output's gradient from `current`, works in the other two and leaves its input's in
// `current`.
class GradientBuffers {
 public:
  void want(const Activation& shape) { elements_ = std::max(elements_, shape.elements()); }
  void allocate(Context& context) {
    for (int i = 0; i < 3; ++i) {
      memory_[i] = context.allocate_storage(elements_);
      data_[i] = memory_[i].as<float>().data();
    }
  }
  Activation current(const Activation& shape) const { return as(0, shape); }
  Activation second(const Activation& shape) const { return as(1, shape); }
  Activation third(const Activation& shape) const { return as(2, shape); }
  void make_third_current() { std::swap(data_[0], data_[2]); }
  void make_second_current() { std::swap(data_[0], data_[1]); }

 private:
  Activation as(int i, Activation shape) const {
    shape.data = data_[i];
    return shape;
  }
  Buffer memory_[3];
  float* data_[3] = {};
  int64_t elements_ = 0;
};

}  // namespace simclr
