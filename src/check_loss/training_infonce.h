// The loss of `simclr_train loss --precision fp32`: the arithmetic of training (kernels/infonce_streaming) on the
// rows of one rank. Not the class that training uses (src/loss/streaming_loss.h): a shard here is one image, so that
// any number of images fits any number of ranks; the caller moves the data between ranks.
#pragma once

#include <span>

#include "kernels/infonce_streaming/infonce_streaming.h"
#include "src/check_loss/views.h"
#include "src/config/settings.h"
#include "src/device/context.h"

namespace simclr {

// Rows in image order, as in exact_infonce.h. Bits of a row depend neither on the threads nor on what the rank owns.
class TrainingInfoNce {
 public:
  using Element = float;

  // Throws Error(kData) for a number that no float holds.
  TrainingInfoNce(const ViewPair& views, ImageRange own, const LossSettings& settings, int threads);

  // Of this rank's rows: [2 * own.count] each.
  void forward(std::span<double> losses, std::span<double> log_denominators);
  // After forward(). log_denominators [2N] of all ranks; grad_z [2 * own.count, C].
  void backward(std::span<const double> log_denominators, std::span<float> grad_z);

 private:
  bool has_rows() const { return problem_.shards > 0; }
  FloatMatrix e_all() const;  // [2N, C], rows [view 1 of 0..N-1 ; view 2 of 0..N-1]

  const InfoNceProblem problem_;  // this rank's images, a shard each
  Context context_;
  Buffer e_;             // [2N, C]
  Buffer norms_;         // [2N] double
  Buffer saved_memory_;  // StreamingSaved
  StreamingSaved saved_;
};

}  // namespace simclr
