// InfoNCE (NT-Xent) with a margin over the GLOBAL batch, algorithm `einsum`: the rank's rows against all 2B columns,
// with the exponentials stored. Chen et al., "A Simple Framework for Contrastive Learning", 2020, eq. 1. The loss that
// also talks to other ranks is src/loss/; plain loops in double over the whole batch are infonce_ref.h.
//
//   s_ij   = <e_i, e_j>                             i an anchor of this rank, j in 0..2B-1
//   l_ij   = (s_ij - margin [j = pos(i)]) / tau     pos(i) = (i + B) mod 2B, j != i (exact mask)
//   N_i    = sum over j not in {i, pos(i)} of exp(l_ij)
//   loss_i = log(1 + N_i / exp(l_i,pos(i)))         = logsumexp over j != i of l_ij, minus l_i,pos(i)
//   q_i    = N_i / (N_i + exp(l_i,pos(i)))          = 1 - p_i,pos(i)
//   L      = 1/(2B) sum_i loss_i
//   dL/ds_ij = 1/(2B tau) * { q_i exp(l_ij) / N_i   j a negative;   -q_i   j = pos(i);   0   j = i }
// decoupled (Yeh et al., "Decoupled Contrastive Learning", 2021): the positive is not part of its own denominator:
// loss_i = log N_i - l_i,pos(i), q_i = 1; it may be negative. A margin would have no gradient.
//
// The positive is kept out of the sums because 1 - p cancels when the loss is small. With a_i = max over negatives of
// l_ij the stored matrix is E_ij = exp(l_ij - a_i), 0 for j = i and j = pos(i); its row sum n_i = N_i / exp(a_i) lies
// in [1, 2B-2], and
//   log(N_i / exp(l_ip)) = log n_i + (a_i - l_ip),   loss_i = softplus of it,   q_i = sigmoid of it,
// which no temperature can overflow. Then dL/ds is a scaled matrix and a sparse one,
//   dL/ds_ij = w_i E_ij - v_i [j = pos(i)],   v_i = q_i / (2B tau),   w_i = v_i / n_i
// so that backward scales rows of C numbers instead of rows of 2B, takes no exponential again, and adds the positive,
// as large as all negatives together, once and in double.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "kernels/infonce_common/infonce_problem.h"

namespace simclr {

// What forward leaves for backward; the memory is the caller's.
struct InfoNceSaved {
  float* exponentials = nullptr;       // E [shards][2n, 2B], shard s from s * shard_elements on
  int64_t shard_elements = 0;          // 2n * 2B, rounded up to 256 bytes
  double* losses = nullptr;            // loss_i [shards * 2n]
  double* negative_weights = nullptr;  // w_i    [shards * 2n]
  double* positive_weights = nullptr;  // v_i    [shards * 2n]

  FloatMatrix shard(const InfoNceProblem& p, int64_t s) const {
    return {exponentials + s * shard_elements, 2 * p.shard_images, p.keys(), p.keys()};
  }
};

// Memory: 4 bytes * anchors * 2B (all but everything), and 24 bytes an anchor. `memory` is 256-byte aligned and stays
// alive from forward to backward.
size_t infonce_saved_bytes(const InfoNceProblem& problem);
InfoNceSaved infonce_saved(const InfoNceProblem& problem, std::span<std::byte> memory);

// Workspace of backward: 4 bytes * (anchors + shards * 2B) * C, of which the CPU uses the anchors' part. A thread:
// 4 bytes * shards * 128 * C.
ScratchNeed infonce_scratch(const InfoNceProblem& problem);

// shard_loss[s] = sum of loss_i over the 2n anchors of shard s, in double, not divided by 2B.     shard_loss [shards]
// e_all [2B, C] holds rows of norm <= 1. FLOPs: 2 * anchors * 2B * C, and anchors * 2B exponentials.
// NaN in e_all gives NaN losses. Synchronous on the CPU. The sums' order is a function of (B, n, C) alone: bits of a
// shard depend neither on threads nor on how many shards the rank owns.
void infonce_forward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                     const InfoNceSaved& saved, std::span<double> shard_loss);

// After forward with the same e_all, with G = dL/ds of the anchors (the two products of the textbook):
//   grad_anchors = G e_all        'ab,bc->ac'   [anchors, C]   the rows as anchors
//   grad_keys    = G^T e_anchors  'ab,ac->bc'   [2B, C]        all rows as keys of this rank's anchors
// dL/de of a row is its anchor row plus the SUM over all ranks of its key row. Shards are combined in tree order.
// Both outputs are overwritten, columns from C to the stride with zeros; they overlap nothing. FLOPs:
// 4 * anchors * 2B * C. Leaves `saved` as it was. Synchronous on the CPU.
void infonce_backward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys);

// loss = total / keys: L from the sum of all 2B losses, one number each, in the memory of the device, so that a loss
// need not come to the host within a step. Synchronous on the CPU.
void infonce_mean_loss(const Exec& exec, const double* total, int64_t keys, double* loss);

// One overload per device; shapes are checked already.
namespace detail {
void infonce_forward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                     const InfoNceSaved& saved, std::span<double> shard_loss);
void infonce_backward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys);
void infonce_mean_loss(const CpuExec& exec, const double* total, int64_t keys, double* loss);

void infonce_forward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                     const InfoNceSaved& saved, std::span<double> shard_loss);
void infonce_backward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys);
void infonce_mean_loss(const CudaExec& exec, const double* total, int64_t keys, double* loss);
}  // namespace detail

}  // namespace simclr
