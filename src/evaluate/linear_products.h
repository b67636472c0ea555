// The two matrix products of a linear classifier, in double over float32 features: every element is summed in one fixed
// order, for any number of threads, ranks and rows. oneDNN's sgemm offers neither the type nor the order.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// logits [rows, K], K = weights.size() / (D + 1): row i of logits = W x_i + b, with weights [K, D + 1] = W | b; summed
// over the D features in their order, b first.
void linear_logits(const CpuExec& exec, const ConstFloatMatrix& features, std::span<const double> weights,
                   std::span<double> logits);

// gradient [K, columns] = residuals^T [K, N] x features[:, first_column .. first_column + columns), summed over the N
// rows in their order. residuals [N, K].
void linear_gradient(const CpuExec& exec, const ConstFloatMatrix& features, std::span<const double> residuals,
                     int64_t first_column, int64_t columns, std::span<double> gradient);

}  // namespace simclr
