// Barlow Twins over the GLOBAL batch: Zbontar et al., "Barlow Twins: Self-Supervised Learning via Redundancy
// Reduction", 2021, eq. 1 and 2. This rank's part; what ranks add up between the calls is src/loss/. Plain loops in
// double over the whole batch are barlow_twins_ref.h.
//
//   y_v   = (z_v - mean_v) / sqrt(var_v + eps)     v = 1, 2: each view and column over all B images, biased variance
//   c_ij  = 1/B sum_k y_1,ki y_2,kj                [C, C]
//   L     = scale * { sum_i (c_ii - 1)^2 + lambda sum_{i != j} c_ij^2 }
//   G_ij  = dL/dc_ij = 2 scale * { c_ii - 1   i = j;   lambda c_ij   i != j }
//   dL/dy_1 = y_2 G^T / B,   dL/dy_2 = y_1 G / B
//   dL/dz_v,ki = (g_ki - 1/B sum_m g_mi - y_v,ki 1/B sum_m g_mi y_v,mi) / sqrt(var_v,i + eps),   g = dL/dy_v
//
// Those two sums over all images are known from c, so that backward adds nothing over samples or ranks:
//   sum_m g_mi = 0, because every column of y sums to 0
//   1/B sum_m g_mi y_v,mi = radial_vi:   radial_1i = 1/B sum_j G_ij c_ij,   radial_2j = 1/B sum_i G_ij c_ij
//
// A step:            sums -> (+ over ranks) -> square_sums -> (+) -> standardize -> products -> (+) -> loss -> backward
// Two passes for the variance, mean and variance in double: a column with a large mean loses nothing. A constant column
// has y = 0 exactly. NaN or infinity in z gives a NaN loss.
// Bits: what goes over images is summed per shard, shards by the ordered tree; every product has a shape that follows
// from n and C alone. So neither ranks nor threads nor the shards in a call change them. Products are true single
// precision on every device. Synchronous on the CPU. No allocation: needs barlow_twins_scratch().
#pragma once

#include <cstdint>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// Rows of z, y and grad_z: [shards * 2n, C], shard after shard, in a shard n rows of view 1, then n of view 2.
struct BarlowTwinsProblem {
  int64_t batch = 0;         // B >= 2, images of the global batch
  int64_t shard_images = 0;  // n >= 1, images of one shard
  int64_t shards = 0;        // consecutive shards that this rank owns, a power of two; shards * n <= B
  int64_t columns = 0;       // C >= 1
  double lambda = 0.005;     // >= 0
  double scale = 1.0;        // > 0
  double eps = 1e-5;         // > 0

  int64_t rows() const { return shards * 2 * shard_images; }  // of this rank
};

// Workspace: 4 bytes * max(rows * C, log2(shards) * min(C^2, 2^22)), all but everything on CUDA only.
// A thread: 4 bytes * 64 * max(log2(shards) * C, n).
ScratchNeed barlow_twins_scratch(const BarlowTwinsProblem& problem);

// sums [2, C] = this rank's part of sum_k z_v,ki. z may be stored as bfloat16.
void barlow_twins_sums(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& problem, double* sums);

// squares [2, C] = this rank's part of sum_k (z_v,ki - mean_vi)^2, with mean = sums / B from the global sums.
void barlow_twins_square_sums(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& problem,
                              const double* sums, double* squares);

// y [rows, C] float32 and inv_std [2, C] = 1 / sqrt(var + eps), from the global sums and squares. Padding of y is left.
void barlow_twins_standardize(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& problem,
                              const double* sums, const double* squares, const FloatMatrix& y, double* inv_std);

// products [C, C] = this rank's part of B c. The stride of y is the same for every number of shards.
// FLOPs: 2 * shards * n * C^2.
void barlow_twins_products(const Exec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& problem,
                           float* products);

// From the global products: L, and for backward radial [2, C], and G / B in place of the products [C, C].
void barlow_twins_loss(const Exec& exec, const BarlowTwinsProblem& problem, float* products_to_grad, double* radial,
                       double* loss);

// grad_z = dL/dz, which may be stored as bfloat16; columns from C to the stride are set to zero.
// grad_c [C, C] = G / B. FLOPs: 4 * shards * n * C^2.
void barlow_twins_backward(const Exec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& problem,
                           const float* grad_c, const double* inv_std, const double* radial, const Matrix& grad_z);

}  // namespace simclr
