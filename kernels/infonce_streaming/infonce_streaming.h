// InfoNCE (infonce.h, the same problem and the same numbers), algorithm `streaming`: logits are never stored. Forward
// makes the similarities tile by tile and keeps one number a row; backward makes them again. Since s is symmetric, a
// rank computes the whole gradient of its rows from e and the log-denominators of all rows: no gradient travels.
//
//   d_i    = log(N_i + exp(l_i,pos(i)))          N_i over negatives, as in infonce.h; decoupled: log N_i
//   p_ij   = exp(l_ij - d_i)                     j a negative of i
//   dL/de_k = 1/(2B tau) [ sum over negatives j of (p_kj + p_jk) e_j - (q_k + q_pos(k)) e_pos(k) ]   decoupled: q = 1
//
// As in einsum the positive is kept out of the sums and its similarity is in double; q_i = 1 / (1 + exp(l_ip - log
// N_i)). Where tau >= (2 + margin) / 86 the exponentials are exp((s - 1) / tau), which cannot underflow, and a tile
// serves its rows and its columns; below that each row has its own maximum and reads its tiles for itself. On CUDA
// every row reads its tiles for itself, on tensor cores (tensor_products.cuh), in single precision or, where
// problem.products says so, with factors rounded to bfloat16: then s is that of the rounded e, and a weight is
// off by up to 2^-9; positives and sums stay what they are.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "kernels/infonce_common/infonce_problem.h"

namespace simclr {

// What forward leaves; the memory is the caller's. Anchors in the order of infonce.h.
struct StreamingSaved {
  double* losses = nullptr;            // loss_i [anchors]
  double* log_denominators = nullptr;  // d_i    [anchors]
  double* positive_weights = nullptr;  // q_i    [anchors]
};

// 24 bytes an anchor.
size_t streaming_saved_bytes(const InfoNceProblem& problem);
StreamingSaved streaming_saved(const InfoNceProblem& problem, std::span<std::byte> memory);

// Workspace on the CPU: 4 bytes * (2 * 2B + anchors) * C and some numbers a row, with 2B and anchors rounded up to
// tiles of 128 and C to 32. A thread: one tile, 64 KB. On CUDA: 4 bytes * (2 * 2B + min(8, 2B / 128) * anchors * C).
ScratchNeed streaming_scratch(const InfoNceProblem& problem, bool on_gpu = false);

// shard_loss as infonce_forward. e_all [2B, C] holds rows of norm <= 1 up to rounding. NaN in e_all gives NaN losses.
// FLOPs: 2B * anchors * 2C; on the CPU half of it where the rank owns both sides of a tile, on CUDA three times as many
// in single precision. Synchronous on the CPU. The sums' order is a function of (B, C) alone: the bits of a row depend
// neither on threads nor on what the rank owns.
void streaming_forward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                       const StreamingSaved& saved, std::span<double> shard_loss);

// grad_e = dL/de of this rank's rows through every role they play on any rank.                       [anchors, C]
// log_denominators: those of all ranks, gathered in rank order: [2B], shard after shard.
// Columns from C to the stride are set to zero. FLOPs: twice those of forward and as many again; on CUDA twice, and
// with more than 512 columns once more for each 512. Leaves `saved` as it was.
void streaming_backward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e);

namespace detail {
void streaming_forward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                       const StreamingSaved& saved, std::span<double> shard_loss);
void streaming_backward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e);

void streaming_forward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                       const StreamingSaved& saved, std::span<double> shard_loss);
void streaming_backward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e);
}  // namespace detail

}  // namespace simclr
