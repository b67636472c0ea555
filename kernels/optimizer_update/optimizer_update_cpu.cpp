#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "kernels/optimizer_update/optimizer_update_device.h"

namespace simclr::optimizer_update {
namespace {

constexpr int64_t kChunk = 1 << 15;  // elements of one task

SIMCLR_MULTIVERSION void sgd_range(const ParameterRun& r, const SgdUpdate& how, int64_t begin, int64_t end) {
  float* __restrict w = r.weight;
  float* __restrict v = r.first;
  const float* __restrict grad = r.grad;
  const float decay = r.decay ? how.weight_decay : 0.0F;
  const float mu = how.momentum, lr = how.lr;
  for (int64_t i = begin; i < end; ++i) {
    const float g = grad[i] + decay * w[i];
    v[i] = mu * v[i] + g;
    w[i] -= lr * (how.nesterov ? g + mu * v[i] : v[i]);
  }
}

SIMCLR_MULTIVERSION void adamw_range(const ParameterRun& r, const AdamWUpdate& how, float correct1, float correct2,
                                     int64_t begin, int64_t end) {
  float* __restrict w = r.weight;
  float* __restrict m = r.first;
  float* __restrict v = r.second;
  const float* __restrict grad = r.grad;
  const float keep = r.decay ? 1.0F - how.lr * how.weight_decay : 1.0F;
  for (int64_t i = begin; i < end; ++i) {
    const float g = grad[i];
    m[i] = how.beta1 * m[i] + (1.0F - how.beta1) * g;
    v[i] = how.beta2 * v[i] + (1.0F - how.beta2) * g * g;
    w[i] = keep * w[i] - how.lr * (m[i] * correct1) / (std::sqrt(v[i] * correct2) + how.eps);
  }
}

// g as kernels/squared_norm takes its norm.
SIMCLR_MULTIVERSION void lars_range(const ParameterRun& r, const LarsUpdate& how, float rate, int64_t begin,
                                    int64_t end) {
  float* __restrict w = r.weight;
  float* __restrict v = r.first;
  const float* __restrict grad = r.grad;
  const double decay = r.decay ? as_double(how.weight_decay) : 0.0;
  for (int64_t i = begin; i < end; ++i) {
    const auto g = to_float(as_double(grad[i]) + decay * as_double(w[i]));
    v[i] = how.momentum * v[i] + rate * g;
    w[i] -= v[i];
  }
}

float lars_rate(const ParameterRun& r, const LarsUpdate& how, double weight_square, double gradient_square) {
  const bool adapted = r.adapt && weight_square > 0 && gradient_square > 0;
  const double ratio =
      adapted ? as_double(how.trust_coefficient) * std::sqrt(weight_square) / std::sqrt(gradient_square) : 1.0;
  return to_float(as_double(how.lr) * ratio);
}

// NaN compares false with everything, so it counts as not finite.
SIMCLR_MULTIVERSION bool all_finite(const float* x, int64_t count) {
  int bad = 0;
  for (int64_t i = 0; i < count; ++i) bad |= !(std::fabs(x[i]) <= std::numeric_limits<float>::max());
  return bad == 0;
}

template <typename F>
void for_each_chunk(const CpuExec& exec, int64_t elements, F&& f) {
  parallel_for(exec, (elements + kChunk - 1) / kChunk,
               [&](int64_t c, int) { f(c * kChunk, std::min(elements, (c + 1) * kChunk)); });
}

}  // namespace

void sgd(const CpuExec& exec, const ParameterTable& table, const SgdUpdate& how, const int* skip) {
  if (*skip != 0) return;
  for (const auto& r : table.runs)
    for_each_chunk(exec, r.elements, [&](int64_t begin, int64_t end) { sgd_range(r, how, begin, end); });
}

void adamw(const CpuExec& exec, const ParameterTable& table, const AdamWUpdate& how, const int* skip) {
  if (*skip != 0) return;
  const auto t = as_double(how.t);
  const auto correct1 = to_float(1.0 / (1.0 - std::pow(as_double(how.beta1), t)));
  const auto correct2 = to_float(1.0 / (1.0 - std::pow(as_double(how.beta2), t)));
  for (const auto& r : table.runs)
    for_each_chunk(exec, r.elements,
                   [&](int64_t begin, int64_t end) { adamw_range(r, how, correct1, correct2, begin, end); });
}

void lars(const CpuExec& exec, const ParameterTable& table, const LarsUpdate& how, const double* squares, float* rates,
          const int* skip) {
  if (*skip != 0) return;
  const size_t count = table.runs.size();
  for (size_t k = 0; k < count; ++k) {
    const ParameterRun& r = table.runs[k];
    rates[k] = lars_rate(r, how, squares[k], squares[count + k]);
    for_each_chunk(exec, r.elements, [&](int64_t begin, int64_t end) { lars_range(r, how, rates[k], begin, end); });
  }
}

void flag_non_finite(const CpuExec& exec, std::span<const float> values, int* flag) {
  std::atomic<bool> bad = false;
  for_each_chunk(exec, std::ssize(values), [&](int64_t begin, int64_t end) {
    if (!all_finite(values.data() + begin, end - begin)) bad = true;
  });
  if (bad) *flag = 1;
}

void flag_non_finite(const CpuExec&, std::span<const double> values, int* flag) {
  for (const double x : values)
    if (!std::isfinite(x)) *flag = 1;
}

}  // namespace simclr::optimizer_update
