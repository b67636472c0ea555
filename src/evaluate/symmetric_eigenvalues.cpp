#include "src/evaluate/symmetric_eigenvalues.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/error.h"

namespace simclr {
namespace {

struct Tridiagonal {
  std::vector<double> diagonal, beside;  // beside[i] couples i and i + 1; the last is 0
};

// A <- H A H, row by row from the last: H = 1 - u u^T / h maps row i of the leading block onto its last element.
Tridiagonal reduce(std::vector<double>& a, int64_t n) {
  const auto at = [&](int64_t row, int64_t col) -> double& { return a[row * n + col]; };
  Tridiagonal t{std::vector<double>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n))};
  std::vector<double> u(n), p(static_cast<size_t>(n));
  for (int64_t i = n - 1; i >= 1; --i) {
    double scale = 0;
    for (int64_t k = 0; k < i; ++k) scale += std::abs(at(i, k));
    double& coupling = t.beside[i - 1];
    double rest = 0;  // of the row but for its last element
    for (int64_t k = 0; k + 1 < i; ++k) rest += std::abs(at(i, k));
    if (rest == 0) {  // tridiagonal here already
      coupling = at(i, i - 1);
      continue;
    }
    double h = 0;
    for (int64_t k = 0; k < i; ++k) {
      u[k] = at(i, k) / scale;
      h += u[k] * u[k];
    }
    const double last = u[i - 1], root = last >= 0 ? -std::sqrt(h) : std::sqrt(h);
    coupling = scale * root;
    h -= last * root;  // |u|^2 / 2 of the reflection's vector
    u[i - 1] = last - root;
    double inner = 0;  // u . A u / h
    std::fill_n(p.begin(), i, 0.0);
    for (int64_t row = 0; row < i; ++row) {  // p = A u from the lower triangle, each element used for both its places
      const double own = u[row];
      double sum = at(row, row) * own;
      for (int64_t k = 0; k < row; ++k) {
        sum += at(row, k) * u[k];
        p[k] += at(row, k) * own;
      }
      p[row] += sum;
    }
    for (int64_t k = 0; k < i; ++k) {
      p[k] /= h;
      inner += u[k] * p[k];
    }
    for (int64_t k = 0; k < i; ++k) p[k] -= inner / (2 * h) * u[k];
    for (int64_t row = 0; row < i; ++row)  // A - u q^T - q u^T
      for (int64_t k = 0; k <= row; ++k) at(row, k) -= u[row] * p[k] + p[row] * u[k];
  }
  for (int64_t i = 0; i < n; ++i) t.diagonal[i] = at(i, i);
  return t;
}

// Where the block that begins at `first` ends: the first coupling that is nothing beside its neighbors.
size_t end_of_block(const Tridiagonal& t, size_t first) {
  size_t last = first;
  while (last + 1 < t.diagonal.size()) {
    const double near = std::abs(t.diagonal[last]) + std::abs(t.diagonal[last + 1]);
    if (std::abs(t.beside[last]) <= std::numeric_limits<double>::epsilon() * near) break;
    ++last;
  }
  return last;
}

// One sweep of QL over first..last with Wilkinson's shift.
void sweep(Tridiagonal& t, size_t first, size_t last) {
  std::vector<double>&d = t.diagonal, &e = t.beside;
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  g = d[last] - d[first] + e[first] / (g + std::copysign(std::hypot(g, 1.0), g));
  double sine = 1, cosine = 1, shift = 0;
  for (size_t i = last; i-- > first;) {
    const double f = sine * e[i], b = cosine * e[i], r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // the matrix falls apart here
      d[i + 1] -= shift;
      e[last] = 0;
      return;
    }
    sine = f / r;
    cosine = g / r;
    g = d[i + 1] - shift;
    const double s = (d[i] - g) * sine + 2 * cosine * b;
    shift = sine * s;
    d[i + 1] = g + shift;
    g = cosine * s - b;
  }
  d[first] -= shift;
  e[first] = g;
  e[last] = 0;
}

}  // namespace

std::vector<double> symmetric_eigenvalues(std::vector<double> matrix, int64_t n) {
  SIMCLR_CHECK(n >= 1 && static_cast<int64_t>(matrix.size()) == n * n, "{} elements of [{}, {}]", matrix.size(), n, n);
  Tridiagonal t = reduce(matrix, n);
  constexpr int kMostSweeps = 60;  // a few do; a matrix that is not finite never ends
  for (size_t first = 0; first < t.diagonal.size(); ++first) {
    for (int sweeps = 0;; ++sweeps) {
      const size_t last = end_of_block(t, first);
      if (last == first) break;
      SIMCLR_CHECK(sweeps < kMostSweeps, "no eigenvalue of [{}, {}] after {} sweeps", n, n, sweeps);
      sweep(t, first, last);
    }
  }
  std::sort(t.diagonal.begin(), t.diagonal.end());
  return t.diagonal;
}

}  // namespace simclr
