// Feature maps, or their gradients, in the arena of the step.
#pragma once

#include "kernels/common/views.h"
#include "src/nn/layer_context.h"

namespace simclr {

class ActivationBuffer {
 public:
  ActivationBuffer() = default;
  ActivationBuffer(const LayerContext& lc, int64_t channels, int64_t height, int64_t width,
                   ActivationArena::Lifetime lifetime)
      : arena_(&lc.arena),
        shape_{nullptr, lc.geometry.local_shards,     lc.geometry.samples(), channels, height,
               width,   lc.context.device().storage()},
        piece_(lc.arena.add(shape_.elements(), lifetime)) {}

  // Its memory is there once the arena is laid out.
  Activation view() const {
    Activation view = shape_;
    view.data = arena_->data(piece_);
    return view;
  }

 private:
  const ActivationArena* arena_ = nullptr;
  Activation shape_;
  int piece_ = -1;
};

// A matrix [rows of this rank, cols] of the network there; its rows are padded_cols(cols) apart.
class MatrixBuffer {
 public:
  MatrixBuffer() = default;
  MatrixBuffer(const LayerContext& lc, int64_t cols, ActivationArena::Lifetime lifetime)
      : arena_(&lc.arena),
        shape_{nullptr, lc.geometry.local_rows(), cols, padded_cols(cols), lc.context.device().storage()},
        piece_(lc.arena.add(shape_.elements(), lifetime)) {}

  Matrix view() const {
    Matrix view = shape_;
    view.data = arena_->data(piece_);
    return view;
  }

 private:
  const ActivationArena* arena_ = nullptr;
  Matrix shape_;
  int piece_ = -1;
};

}  // namespace simclr
