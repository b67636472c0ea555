// Plain loops in double. Formulas and letters as in infonce.h; time 3 (2B)^2 C.
#include "kernels/infonce/infonce_ref.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

constexpr double kNormFloor = 1e-12;  // of kernels/l2_normalize

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

InfoNceReference infonce_reference_from_embeddings(std::span<const double> e,
                                                   const InfoNceReferenceSettings& settings) {
  const int64_t batch = settings.batch, rows = 2 * batch, columns = settings.columns;
  SIMCLR_CHECK(batch >= 2 && std::ssize(e) == rows * columns, "{} numbers for [{}, {}]", e.size(), rows, columns);
  const auto row = [&](int64_t i) { return e.data() + i * columns; };
  InfoNceReference out;
  out.losses.resize(rows);
  out.grad_e.assign(rows * columns, 0.0);
  std::vector<double> logits(rows);  // l_ij of one anchor
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t positive = (i + batch) % rows;
    const auto is_negative = [&](int64_t j) { return j != i && j != positive; };
    double top = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < rows; ++j) {
      if (j == i) continue;
      logits[j] = (dot(row(i), row(j), columns) - (j == positive ? settings.margin : 0.0)) / settings.temperature;
      if (is_negative(j)) top = std::max(top, logits[j]);
    }
    double sum = 0;  // N_i / exp(top)
    for (int64_t j = 0; j < rows; ++j) {
      if (is_negative(j)) sum += std::exp(logits[j] - top);
    }
    const double gap = std::log(sum) + top - logits[positive];  // log(N_i / exp(l_ip))
    const double q = settings.decoupled ? 1 : 1 / (1 + std::exp(-gap));
    out.losses[i] = settings.decoupled ? gap : std::max(gap, 0.0) + std::log1p(std::exp(-std::abs(gap)));
    out.loss += out.losses[i] / as_double(rows);
    for (int64_t j = 0; j < rows; ++j) {
      if (j == i) continue;
      const double p_or_minus_q = is_negative(j) ? q * std::exp(logits[j] - top) / sum : -q;
      const double grad_s = p_or_minus_q / (as_double(rows) * settings.temperature);  // dL/ds_ij
      for (int64_t c = 0; c < columns; ++c) {
        out.grad_e[i * columns + c] += grad_s * row(j)[c];  // i as anchor
        out.grad_e[j * columns + c] += grad_s * row(i)[c];  // j as i's key
      }
    }
  }
  return out;
}

InfoNceReference infonce_reference(std::span<const double> z, const InfoNceReferenceSettings& settings) {
  const int64_t columns = settings.columns, rows = std::ssize(z) / columns;
  std::vector<double> e(z.begin(), z.end()), norms(rows);
  for (int64_t i = 0; i < rows; ++i) {
    norms[i] = std::sqrt(dot(&z[i * columns], &z[i * columns], columns));
    for (int64_t c = 0; c < columns; ++c) e[i * columns + c] /= std::max(norms[i], kNormFloor);
  }
  InfoNceReference out = infonce_reference_from_embeddings(e, settings);
  out.grad_z.assign(z.size(), 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    if (norms[i] <= kNormFloor) continue;
    const double* e_row = &e[i * columns];
    const double* g_row = &out.grad_e[i * columns];
    const double radial = dot(e_row, g_row, columns);
    for (int64_t c = 0; c < columns; ++c) out.grad_z[i * columns + c] = (g_row[c] - e_row[c] * radial) / norms[i];
  }
  return out;
}

}  // namespace simclr
