// The training objective as the loop sees it: a number from the rank's projector outputs, and their gradient.
// Everything that ranks exchange for it happens inside. The settings name the objective; make_loss() knows
// them all.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/views.h"
#include "src/comm/collectives.h"
#include "src/config/settings.h"
#include "src/device/context.h"

namespace simclr {

// The global batch as the loss sees it.
struct LossShape {
  int64_t batch = 0;    // B, images of the global batch
  int64_t columns = 0;  // C, width of a projector output
  int64_t shards = 0;   // S; the rank owns the S/W consecutive shards from rank * S/W on

  int64_t shard_images() const { return batch / shards; }  // n
};

// Rows of z and grad_z: [shards of this rank * 2n, C], shard after shard, in a shard n rows of view 1, then n of
// view 2. forward() and backward() are collective: every rank calls them in the same order. With power-of-two shards
// all results have the same bits for every number of ranks that divides S.
class ContrastiveLoss {
 public:
  virtual ~ContrastiveLoss() = default;

  // The loss over the GLOBAL batch: the same bits on every rank. NaN or infinity when an input has one. Returns the
  // place in the device's memory where it will stand when the device gets there (at once on the CPU); it stays until
  // the next forward().
  virtual const double* forward(const ConstMatrix& z) = 0;

  // grad_z = dL/dz of the last forward()'s rows, through every role that a row plays on ANY rank. L is the global mean:
  // parameter gradients that follow from grad_z are summed over ranks, with no factor of W. Columns from C to the
  // stride are set to zero. Once per forward(); z is not read.
  virtual void backward(const Matrix& grad_z) = 0;

  // What the loss sees, one line for the start of the log.
  virtual std::string describe() const = 0;

  // Bytes of device memory that this rank's loss holds, without the scratch shared with other ops.
  virtual size_t memory_bytes() const = 0;
};

// Takes all memory now; context and collectives outlive the loss. Every rank passes the same settings and shape.
std::unique_ptr<ContrastiveLoss> make_loss(Context& context, Collectives& collectives, const LossSettings& settings,
                                           const LossShape& shape);

}  // namespace simclr
