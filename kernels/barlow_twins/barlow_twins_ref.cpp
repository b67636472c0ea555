// Plain loops in double. Formulas and letters as in barlow_twins.h; time 6 B C^2.
#include "kernels/barlow_twins/barlow_twins_ref.h"

#include <cmath>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

BarlowTwinsReference barlow_twins_reference(std::span<const double> z, const BarlowTwinsReferenceSettings& s) {
  const int64_t batch = s.batch, columns = s.columns;
  const auto count = as_double(batch);
  SIMCLR_CHECK(batch >= 1 && std::ssize(z) == 2 * batch * columns, "{} numbers for [{}, {}]", z.size(), 2 * batch,
               columns);
  const auto at = [&](int64_t view, int64_t k, int64_t c) { return (view * batch + k) * columns + c; };

  BarlowTwinsReference out;
  out.y.resize(z.size());
  out.inv_std.resize(2 * columns);
  for (int64_t view = 0; view < 2; ++view) {
    for (int64_t c = 0; c < columns; ++c) {
      double mean = 0, var = 0;
      for (int64_t k = 0; k < batch; ++k) mean += z[at(view, k, c)] / count;
      for (int64_t k = 0; k < batch; ++k) var += std::pow(z[at(view, k, c)] - mean, 2) / count;
      out.inv_std[view * columns + c] = 1 / std::sqrt(var + s.eps);
      for (int64_t k = 0; k < batch; ++k)
        out.y[at(view, k, c)] = (z[at(view, k, c)] - mean) * out.inv_std[view * columns + c];
    }
  }

  out.c.resize(columns * columns);
  out.grad_y.assign(z.size(), 0.0);
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double c = 0;
      for (int64_t k = 0; k < batch; ++k) c += out.y[at(0, k, i)] * out.y[at(1, k, j)] / count;
      out.c[i * columns + j] = c;
      const double weight = i == j ? s.scale : s.scale * s.lambda, wanted = i == j ? 1 : 0;
      out.loss += weight * (c - wanted) * (c - wanted);
      const double grad_c = 2 * weight * (c - wanted);  // G_ij
      for (int64_t k = 0; k < batch; ++k) {
        out.grad_y[at(0, k, i)] += grad_c * out.y[at(1, k, j)] / count;
        out.grad_y[at(1, k, j)] += grad_c * out.y[at(0, k, i)] / count;
      }
    }
  }

  out.grad_z.resize(z.size());
  for (int64_t view = 0; view < 2; ++view) {
    for (int64_t c = 0; c < columns; ++c) {
      double mean_g = 0, mean_gy = 0;
      for (int64_t k = 0; k < batch; ++k) {
        mean_g += out.grad_y[at(view, k, c)] / count;
        mean_gy += out.grad_y[at(view, k, c)] * out.y[at(view, k, c)] / count;
      }
      for (int64_t k = 0; k < batch; ++k) {
        out.grad_z[at(view, k, c)] =
            out.inv_std[view * columns + c] * (out.grad_y[at(view, k, c)] - mean_g - out.y[at(view, k, c)] * mean_gy);
      }
    }
  }
  return out;
}

}  // namespace simclr
