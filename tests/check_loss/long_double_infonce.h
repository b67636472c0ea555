// InfoNCE in long double (64 bits of mantissa), by its definition: the matrix of dL/ds is stored, both sides of it are
// applied. What exact_infonce.h is held to; a few hundred rows at most.
#pragma once

#include <cmath>
#include <vector>

#include "src/config/settings.h"

namespace simclr::test {

struct LongDoubleLoss {
  long double loss = 0;
  std::vector<long double> losses;  // [2N]
  std::vector<long double> grad_z;  // [2N, C]
  long double pull = 0;             // length of the positives' part of dL/de: a measure where the gradient cancels
};

// z [2N, C], rows [view 1 of 0..N-1 ; view 2 of 0..N-1].
inline LongDoubleLoss long_double_infonce(const std::vector<long double>& z, int64_t columns,
                                          const LossSettings& settings) {
  const int64_t rows = static_cast<int64_t>(z.size()) / columns, batch = rows / 2;
  const auto dot = [&](const std::vector<long double>& a, int64_t i, const std::vector<long double>& b, int64_t j) {
    long double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += a[i * columns + c] * b[j * columns + c];
    return sum;
  };
  std::vector<long double> e = z, norms(rows), grad_s(rows * rows), grad_e(z.size());
  for (int64_t i = 0; i < rows; ++i) {
    norms[i] = std::sqrt(dot(z, i, z, i));
    for (int64_t c = 0; c < columns; ++c) e[i * columns + c] /= std::max(norms[i], 1e-12L);
  }
  LongDoubleLoss out{.losses = std::vector<long double>(rows), .grad_z = std::vector<long double>(z.size())};
  const long double tau = settings.temperature, scale = 1 / (static_cast<long double>(rows) * tau);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t positive = (i + batch) % rows;
    const long double l_positive = (dot(e, i, e, positive) - settings.margin) / tau;
    long double ratio = 0;  // N_i / exp(l_ip): long double holds exp(11000)
    for (int64_t j = 0; j < rows; ++j) {
      if (j == i || j == positive) continue;
      grad_s[i * rows + j] = std::exp(dot(e, i, e, j) / tau - l_positive);
      ratio += grad_s[i * rows + j];
    }
    out.losses[i] = settings.decoupled ? std::log(ratio) : std::log1p(ratio);
    out.loss += out.losses[i] / static_cast<long double>(rows);
    const long double denominator = settings.decoupled ? ratio : 1 + ratio;
    for (int64_t j = 0; j < rows; ++j) grad_s[i * rows + j] *= scale / denominator;
    grad_s[i * rows + positive] = -scale * ratio / denominator;
    out.pull += grad_s[i * rows + positive] * grad_s[i * rows + positive];
  }
  out.pull = std::sqrt(out.pull);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) {
      for (int64_t c = 0; c < columns; ++c) {
        grad_e[i * columns + c] += grad_s[i * rows + j] * e[j * columns + c];
        grad_e[j * columns + c] += grad_s[i * rows + j] * e[i * columns + c];
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const long double radial = dot(e, i, grad_e, i);
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = i * columns + c;
      out.grad_z[at] = norms[i] <= 1e-12L ? 0 : (grad_e[at] - e[at] * radial) / norms[i];
    }
  }
  return out;
}

}  // namespace simclr::test
