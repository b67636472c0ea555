#include "src/evaluate/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "kernels/common/error.h"

namespace simclr {
namespace {

using Vector = std::vector<double>;

constexpr size_t kPairs = 10;        // history: pairs of steps and gradient changes
constexpr double kArmijo = 1e-4;     // share of the linear decrease that a step must achieve
constexpr double kRounding = 1e-14;  // relative error of a value of the function
constexpr int kMostHalvings = 40;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double largest(const Vector& a) {
  double most = 0;
  for (const double x : a) most = std::max(most, std::isfinite(x) ? std::abs(x) : INFINITY);
  return most;
}

struct Pair {
  Vector step, change;  // of the point, of the gradient
  double inner = 0;     // step . change > 0
};

// -H g by the two loops over the remembered pairs; H0 = gamma / curvature.
Vector direction(const Vector& gradient, const std::deque<Pair>& pairs, std::span<const double> curvature) {
  Vector q = gradient, alphas(pairs.size());
  for (size_t i = pairs.size(); i-- > 0;) {
    alphas[i] = dot(pairs[i].step, q) / pairs[i].inner;
    for (size_t k = 0; k < q.size(); ++k) q[k] -= alphas[i] * pairs[i].change[k];
  }
  double gamma = 1;
  if (!pairs.empty()) {
    double scaled = 0;  // change . change / curvature
    for (size_t k = 0; k < q.size(); ++k) scaled += pairs.back().change[k] * pairs.back().change[k] / curvature[k];
    gamma = pairs.back().inner / scaled;
  }
  for (size_t k = 0; k < q.size(); ++k) q[k] *= gamma / curvature[k];
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double beta = dot(pairs[i].change, q) / pairs[i].inner;
    for (size_t k = 0; k < q.size(); ++k) q[k] += (alphas[i] - beta) * pairs[i].step[k];
  }
  for (double& x : q) x = -x;
  return q;
}

}  // namespace

LbfgsResult minimize(const Objective& objective, std::span<const double> curvature, const LbfgsOptions& options,
                     std::vector<double>& point, const LbfgsProgress& progress) {
  SIMCLR_CHECK(curvature.size() == point.size(), "{} curvatures for {} variables", curvature.size(), point.size());
  Vector gradient(point.size()), next(point.size()), next_gradient(point.size());
  LbfgsResult result;
  result.value = objective(point, gradient);
  result.gradient = largest(gradient);
  std::deque<Pair> pairs;
  while (result.gradient > options.tolerance && result.iterations < options.most_iterations) {
    const Vector d = direction(gradient, pairs, curvature);
    const double slope = dot(gradient, d);
    double length = 1, value = 0;
    bool found = false;
    for (int halving = 0; halving < kMostHalvings && !found; ++halving) {
      for (size_t k = 0; k < point.size(); ++k) next[k] = point[k] + length * d[k];
      value = objective(next, next_gradient);
      found = value <= result.value + kArmijo * length * slope + kRounding * std::abs(result.value);
      if (!found) length /= 2;
    }
    if (!found) break;  // the remaining descent is below the rounding error
    Pair pair{Vector(point.size()), Vector(point.size()), 0};
    for (size_t k = 0; k < point.size(); ++k) {
      pair.step[k] = next[k] - point[k];
      pair.change[k] = next_gradient[k] - gradient[k];
    }
    pair.inner = dot(pair.step, pair.change);
    if (pair.inner > 0) {
      if (pairs.size() == kPairs) pairs.pop_front();
      pairs.push_back(std::move(pair));
    }
    point.swap(next);
    gradient.swap(next_gradient);
    result.value = value;
    result.gradient = largest(gradient);
    ++result.iterations;
    if (progress) progress(result);
  }
  result.converged = result.gradient <= options.tolerance;
  return result;
}

}  // namespace simclr
