// Row-wise L2 normalization, the last step before the contrastive loss: e = z / max(||z||, 1e-12).
// Norms are sums of squares in double, so every finite float row has a finite norm (1e20 and 1e-20 alike).
#pragma once

#include <span>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// A row whose norm is not above this is divided by it and gets gradient 0 (the floor is what it is divided by, and the
// floor does not depend on z).
inline constexpr double kNormFloor = 1e-12;

// e = z / max(norm, kNormFloor), norms = ||z||          z, e [rows, C], norms [rows]
// z and e may be the same memory. Columns of e from C to its stride are set to zero. A row with a NaN or an infinity
// keeps or gets a NaN. Bits depend on the row alone. Synchronous on the CPU. No scratch.
void l2_normalize_forward(const Exec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms);

// grad_z = (grad_e - e <e, grad_e>) / norm, and 0 where norm <= kNormFloor          all [rows, C], norms [rows]
// <e, grad_e> is summed in double. grad_e and grad_z may be the same memory; e must be another one. Columns of grad_z
// from C to its stride are set to zero. Synchronous on the CPU. No scratch.
void l2_normalize_backward(const Exec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z);

// One overload per device; shapes are checked already.
namespace detail {
void l2_normalize_forward(const CpuExec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms);
void l2_normalize_backward(const CpuExec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z);

void l2_normalize_forward(const CudaExec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms);
void l2_normalize_backward(const CudaExec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z);
}  // namespace detail

}  // namespace simclr
