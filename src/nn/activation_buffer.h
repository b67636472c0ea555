// A layer's feature maps, or their gradients, as a piece of the step's activation arena.
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
        shape_{.data = {nullptr, storage_of(lc.context.exec())},
               .shards = lc.geometry.local_shards,
               .samples = lc.geometry.samples(),
               .channels = channels,
               .height = height,
               .width = width,
               .layout = layout_of(lc.context.exec())},
        piece_(lc.arena.add(shape_.elements(), lifetime)) {}

  // The view has memory once the arena is allocated.
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

// The same for a matrix [rows of this rank, cols]; its stride is padded_cols(cols).
class MatrixBuffer {
 public:
  MatrixBuffer() = default;
  MatrixBuffer(const LayerContext& lc, int64_t cols, ActivationArena::Lifetime lifetime)
      : arena_(&lc.arena),
        shape_{.data = {nullptr, storage_of(lc.context.exec())},
               .rows = lc.geometry.local_rows(),
               .cols = cols,
               .stride = padded_cols(cols)},
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
