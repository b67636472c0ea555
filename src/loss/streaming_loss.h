// Global InfoNCE, algorithm `streaming`: kernels/infonce_streaming/infonce_streaming.h for the arithmetic, two gathers for the other
// ranks. The same numbers as InfoNceLoss up to rounding, without its matrix of logits and without a gradient on the
// wire.
#pragma once

#include "kernels/infonce_streaming/infonce_streaming.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {

// forward:  e = z/||z|| -> all_gather e (the rank's 2n S/W rows) -> rows to global order -> losses of the rank's
// anchors
//           -> sum per shard, tree over shards, ordered_sum over ranks -> / 2B
// backward: all_gather the log-denominators of the anchors -> the whole gradient of the rank's rows, as anchors and as
//           everybody's keys -> back through e = z/||z||
// On the wire a step: 2B * C floats, 2B doubles, and one double.
class StreamingLoss : public ContrastiveLoss {
 public:
  StreamingLoss(Context& context, Collectives& collectives, const LossSettings& settings, const LossShape& shape);

  const double* forward(const ConstMatrix& z) override;
  void backward(const Matrix& grad_z) override;
  std::string describe() const override;
  size_t memory_bytes() const override { return memory_bytes_; }

 private:
  Buffer allocate(int64_t rows);
  FloatMatrix rows_of(const Buffer& buffer) const;

  Context& context_;
  Collectives& collectives_;
  const LossShape shape_;
  const InfoNceProblem problem_;
  size_t memory_bytes_ = 0;
  bool has_forward_ = false;

  Buffer e_local_;           // [rows of this rank, C], by shard
  Buffer e_all_;             // [2B, C], global order
  Buffer by_shard_;          // [2B, C], gathered e by shard; then, in backward, grad_e [rows of this rank, C]
  Buffer norms_;             // [rows of this rank] double
  Buffer shard_losses_;      // [shards of this rank] double
  Buffer loss_;              // one double
  Buffer log_denominators_;  // [2B] double, by shard
  Buffer saved_memory_;      // StreamingSaved
  StreamingSaved saved_;
};

}  // namespace simclr
