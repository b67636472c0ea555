// Barlow Twins over the global batch: kernels/barlow_twins for the arithmetic, three sums for the other ranks.
#pragma once

#include "kernels/barlow_twins/barlow_twins.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {

// forward:  sums of columns -> + over ranks -> sums of squares about the mean -> + over ranks -> standardized rows y
//           -> products y_1^T y_2 of the rank's images -> + over ranks -> loss, and G = dL/dc in place of the products
// backward: dL/dy from y and G, and through the standardization. No rank waits for another.
// On the wire a step: C^2 floats and 4 C doubles, each summed over ranks. Held: 4 C^2 bytes, and y.
class BarlowTwinsLoss : public ContrastiveLoss {
 public:
  BarlowTwinsLoss(Context& context, Collectives& collectives, const LossSettings& settings, const LossShape& shape);

  const double* forward(const ConstMatrix& z) override;
  void backward(const Matrix& grad_z) override;
  std::string describe() const override;
  size_t memory_bytes() const override;

 private:
  Work work(int products) const;
  FloatMatrix y() const;  // [rows of this rank, C]

  Context& context_;
  Collectives& collectives_;
  const BarlowTwinsProblem problem_;
  bool has_forward_ = false;

  const int64_t y_stride_;  // so that every shard starts at 256 bytes
  Buffer y_;                // standardized rows
  Buffer products_;         // [C, C] B c, then G / B
  Buffer sums_, squares_;   // [2, C] double: of the columns of each view
  Buffer inv_std_;          // [2, C] double
  Buffer radial_;           // [2, C] double
  Buffer loss_;             // one double
};

}  // namespace simclr
