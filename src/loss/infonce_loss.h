// Global InfoNCE, algorithm `einsum`: kernels/infonce for the arithmetic, two collectives for the other ranks.
// The schemes that the field got wrong, and what each does to the gradient: tests/loss/wrong_schemes.h.
#pragma once

#include "kernels/infonce/infonce.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {

// forward:  e = z/||z|| -> all_gather e (the rank's 2n S/W rows) -> rows to global order -> losses of the rank's
// anchors
//           -> sum per shard, tree over shards, ordered_sum over ranks -> / 2B
// backward: grad as anchor [own rows], grad as key [all 2B rows] -> reduce_scatter of the key side in shard order: each
//           rank gets the sum over ALL ranks for its own rows -> added to the anchor side -> back through e = z/||z||
// On the wire a step: 2 * 2B * C floats, and one double.
class InfoNceLoss : public ContrastiveLoss {
 public:
  InfoNceLoss(Context& context, Collectives& collectives, const LossSettings& settings, const LossShape& shape);

  const double* forward(const ConstMatrix& z) override;
  void backward(const Matrix& grad_z) override;
  std::string describe() const override;
  size_t memory_bytes() const override { return memory_bytes_; }

 private:
  Buffer allocate(int64_t rows);

  Context& context_;
  Collectives& collectives_;
  const LossShape shape_;
  const InfoNceProblem problem_;
  size_t memory_bytes_ = 0;
  bool has_forward_ = false;

  // Rows of C floats without padding: they travel.
  Buffer e_local_;       // [rows of this rank, C], by shard
  Buffer e_all_;         // [2B, C], global order
  Buffer by_shard_;      // [2B, C], by shard: gathered e in forward, the key side in backward
  Buffer grad_keys_;     // [2B, C], global order
  Buffer grad_e_;        // [rows of this rank, C]: anchor side, then the whole
  Buffer grad_e_keys_;   // [rows of this rank, C]: key side summed over all ranks
  Buffer norms_;         // [rows of this rank] double
  Buffer shard_losses_;  // [shards of this rank] double
  Buffer loss_;          // one double
  Buffer saved_memory_;  // [rows of this rank, 2B] and more: InfoNceSaved
  InfoNceSaved saved_;
};

}  // namespace simclr
