// Dual numbers: a value and its derivatives along a few directions, carried through every operation by the rules of
// calculus (forward-mode differentiation). Derivatives of plain loops without a step size. For the reference only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace simclr::test {

inline constexpr size_t kDirections = 4;

struct Dual {
  double value = 0;
  std::array<double, kDirections> slope{};

  Dual() = default;
  Dual(double v) : value(v) {}  // NOLINT: a constant, as double converts everywhere

  // value v, slopes a * x.slope + b * y.slope
  Dual(double v, double a, const Dual& x, double b, const Dual& y) : value(v) {
    for (size_t k = 0; k < kDirections; ++k) slope[k] = a * x.slope[k] + b * y.slope[k];
  }
  Dual& operator+=(const Dual& x) { return *this = Dual(value + x.value, 1, *this, 1, x); }
  friend Dual operator+(const Dual& x, const Dual& y) { return {x.value + y.value, 1, x, 1, y}; }
  friend Dual operator-(const Dual& x, const Dual& y) { return {x.value - y.value, 1, x, -1, y}; }
  friend Dual operator*(const Dual& x, const Dual& y) { return {x.value * y.value, y.value, x, x.value, y}; }
  friend Dual operator/(const Dual& x, const Dual& y) {
    const double q = x.value / y.value;
    return {q, 1 / y.value, x, -q / y.value, y};
  }
};

inline double square_root(double x) {
  return std::sqrt(x);
}
inline Dual square_root(const Dual& x) {
  const double root = std::sqrt(x.value);
  return {root, 0.5 / root, x, 0, x};
}

inline double value_of(double x) {
  return x;
}
inline double value_of(const Dual& x) {
  return x.value;
}

// y += w * x, the inner loop of a convolution.
inline void add_product(double w, double x, double& y) {
  y += w * x;
}
inline void add_product(const Dual& w, const Dual& x, Dual& y) {
  y.value += w.value * x.value;
  for (size_t k = 0; k < kDirections; ++k) y.slope[k] += w.slope[k] * x.value + w.value * x.slope[k];
}

}  // namespace simclr::test
