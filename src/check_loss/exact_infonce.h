// The loss of `simclr_train loss --precision fp64`: InfoNCE in double throughout, for any temperature and margin. It
// judges other losses, so it is plain: no symmetry, no fixed shift, no arithmetic in common with the loss of training.
//
// Letters as in kernels/infonce_streaming/infonce_streaming.h. Rows in IMAGE ORDER: row 2i is view 1 of image i, row 2i + 1 its view 2,
// so that row r's positive is row r ^ 1 and the rows of a rank's images are one run.
//
//   e_r    = z_r / max(||z_r||, 1e-12)              norms scaled, so that 1e300 and 1e-300 are numbers as any other
//   l_rj   = <e_r, e_j> / tau                       j not in {r, r ^ 1};  l_r = (<e_r, e_r^1> - margin) / tau
//   logN_r = log sum_j exp(l_rj)                    the positive stays out of the sum, which is kept below its largest
//   term loss_r = log(1 + exp(logN_r - l_r))             decoupled: logN_r - l_r d_r    = l_r + loss_r log of the
//   denominator q_r    = 1 / (1 + exp(l_r - logN_r))            decoupled: 1 dL/de_r = 1/(2N tau) [ sum_j (exp(l_rj -
//   d_r) + exp(l_rj - d_j)) e_j - (q_r + q_r^1) e_r^1 ] dL/dz_r = (g - e_r <e_r, g>) / ||z_r||, g = dL/de_r; 0 where
//   ||z_r|| <= 1e-12
#pragma once

#include <span>
#include <vector>

#include "src/check_loss/views.h"
#include "src/config/settings.h"

namespace simclr {

// One rank's part. Bits of a row depend neither on the threads nor on what the rank owns.
class ExactInfoNce {
 public:
  using Element = double;

  // Takes what it needs of the views: 8 bytes * 2N * C for e, and some numbers a row.
  ExactInfoNce(const ViewPair& views, ImageRange own, const LossSettings& settings, int threads);

  // Of this rank's rows: [2 * own.count] each.
  void forward(std::span<double> losses, std::span<double> log_denominators);
  // After forward(). log_denominators [2N] of all ranks; grad_z [2 * own.count, C].
  void backward(std::span<const double> log_denominators, std::span<double> grad_z);

 private:
  const double* row(int64_t r) const { return e_.data() + r * width_; }
  int64_t own_begin() const { return 2 * own_.first; }
  int64_t own_end() const { return own_begin() + 2 * own_.count; }
  void find_logits(int64_t first_row, int64_t rows, int64_t first_key, double* logits, double* keys) const;
  void finish_gradient(int64_t r, const double* pulled, double* grad_z) const;

  const ImageRange own_;
  const LossSettings settings_;
  const int threads_;
  const int64_t rows_, columns_, width_;  // 2N, C, C rounded up
  std::vector<double> e_;                 // [2N and a block more, width], zeros beyond 2N and C
  std::vector<double> norms_;             // [2N]
  std::vector<double> positive_weights_;  // q of own rows
};

}  // namespace simclr
