#include "kernels/batch_norm/batch_norm_ref.h"

#include <cmath>

#include "kernels/common/numbers.h"

namespace simclr::batch_norm_ref {
namespace {

// f(index in x, index in [groups, C], channel) for every element.
template <typename F>
void for_each(const Shape& s, F&& f) {
  int64_t at = 0;
  for (int64_t i = 0; i < s.shards * s.samples; ++i) {
    const int64_t group = i % s.samples * s.groups / s.samples;
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t p = 0; p < s.height * s.width; ++p, ++at) f(at, group * s.channels + c, c);
  }
}

struct Moments {
  std::vector<double> mean, var;  // [groups, C]
};

Moments moments(const Shape& s, const std::vector<double>& x) {
  const int64_t size = s.groups * s.channels;
  const auto m = as_double(s.group_count());
  Moments r{std::vector<double>(size), std::vector<double>(size)};
  for_each(s, [&](int64_t i, int64_t k, int64_t) { r.mean[k] += x[i] / m; });
  for_each(s, [&](int64_t i, int64_t k, int64_t) { r.var[k] += (x[i] - r.mean[k]) * (x[i] - r.mean[k]) / m; });
  return r;
}

}  // namespace

Forward forward(const Shape& s, const std::vector<double>& x, const std::vector<double>& gamma,
                const std::vector<double>& beta, const std::vector<double>& residual, bool relu, double eps) {
  const Moments at = moments(s, x);
  std::vector<double> y(x.size());
  for_each(s, [&](int64_t i, int64_t k, int64_t c) {
    y[i] = gamma[c] * (x[i] - at.mean[k]) / std::sqrt(at.var[k] + eps) + beta[c];
    if (!residual.empty()) y[i] += residual[i];
    if (relu && y[i] < 0) y[i] = 0;
  });
  return {y, at.mean, at.var};
}

Backward backward(const Shape& s, const std::vector<double>& grad_y, const std::vector<double>& x,
                  const std::vector<double>& relu_y, const std::vector<double>& gamma, double eps) {
  const Moments at = moments(s, x);
  const auto m = as_double(s.group_count());
  Backward r{.grad_x = std::vector<double>(x.size()),
             .grad_residual = grad_y,
             .grad_gamma = std::vector<double>(gamma.size()),
             .grad_beta = std::vector<double>(gamma.size())};
  std::vector<double>& g = r.grad_residual;
  for (size_t i = 0; i < relu_y.size(); ++i)
    if (!(relu_y[i] > 0)) g[i] = 0;

  const auto xhat = [&](int64_t i, int64_t k) { return (x[i] - at.mean[k]) / std::sqrt(at.var[k] + eps); };
  std::vector<double> sum_g(at.mean.size()), sum_g_xhat(at.mean.size());  // [groups, C]
  for_each(s, [&](int64_t i, int64_t k, int64_t c) {
    sum_g[k] += g[i];
    sum_g_xhat[k] += g[i] * xhat(i, k);
    r.grad_beta[c] += g[i];
    r.grad_gamma[c] += g[i] * xhat(i, k);
  });
  for_each(s, [&](int64_t i, int64_t k, int64_t c) {
    r.grad_x[i] = gamma[c] / std::sqrt(at.var[k] + eps) * (g[i] - sum_g[k] / m - xhat(i, k) * sum_g_xhat[k] / m);
  });
  return r;
}

}  // namespace simclr::batch_norm_ref
