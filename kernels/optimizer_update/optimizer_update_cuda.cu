// CUDA: all parameters in one launch. Every element is updated alone, so its bits do not depend on the grid.
#include <cfloat>
#include <cmath>

#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/optimizer_update/optimizer_update_device.h"

namespace simclr::optimizer_update {
namespace {

constexpr int64_t kChunk = 4096;       // elements that a block takes at a time
constexpr int64_t kMostBlocks = 1024;  // of an update: a block walks over the whole table, so more would only walk

struct SgdRule {
  float lr, momentum, weight_decay;
  bool nesterov;

  __device__ void operator()(const ParameterRun& r, int /*run*/, int64_t i) const {
    const float decay = r.decay ? weight_decay : 0.0F;
    const float w = r.weight[i];
    const float g = r.grad[i] + decay * w;
    const float v = momentum * r.first[i] + g;
    r.first[i] = v;
    r.weight[i] = w - lr * (nesterov ? g + momentum * v : v);
  }
};

struct AdamWRule {
  float lr, beta1, beta2, eps, weight_decay, correct1, correct2;

  __device__ void operator()(const ParameterRun& r, int /*run*/, int64_t i) const {
    const float keep = r.decay ? 1.0F - lr * weight_decay : 1.0F;
    const float g = r.grad[i];
    const float m = beta1 * r.first[i] + (1.0F - beta1) * g;
    const float v = beta2 * r.second[i] + (1.0F - beta2) * g * g;
    r.first[i] = m;
    r.second[i] = v;
    r.weight[i] = keep * r.weight[i] - lr * (m * correct1) / (sqrtf(v * correct2) + eps);
  }
};

// g as kernels/squared_norm takes its norm.
struct LarsRule {
  float momentum, weight_decay;
  const float* rates;  // [runs]

  __device__ void operator()(const ParameterRun& r, int run, int64_t i) const {
    const double decay = r.decay ? as_double(weight_decay) : 0.0;
    const float w = r.weight[i];
    const float g = to_float(as_double(r.grad[i]) + decay * as_double(w));
    const float v = momentum * r.first[i] + rates[run] * g;
    r.first[i] = v;
    r.weight[i] = w - v;
  }
};

// One thread a run.
__global__ void lars_rates_kernel(const ParameterRun* runs, int count, LarsUpdate how, const double* squares,
                                  float* rates) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= count) return;
  const double weight_square = squares[k], gradient_square = squares[count + k];
  const bool adapted = runs[k].adapt && weight_square > 0 && gradient_square > 0;
  const double ratio = adapted ? as_double(how.trust_coefficient) * sqrt(weight_square) / sqrt(gradient_square) : 1.0;
  rates[k] = to_float(as_double(how.lr) * ratio);
}

// The chunks of all runs in one row, dealt to the blocks in turn.
template <typename Rule>
__global__ void update_kernel(const ParameterRun* runs, int count, Rule rule, const int* skip) {
  if (*skip != 0) return;
  int64_t chunk = blockIdx.x;  // the block's next one, counted from the start of the run
  for (int k = 0; k < count; ++k) {
    const ParameterRun run = runs[k];
    const int64_t chunks = ceil_div(run.elements, kChunk);
    for (; chunk < chunks; chunk += gridDim.x) {
      const int64_t rest = run.elements - chunk * kChunk, end = chunk * kChunk + (rest < kChunk ? rest : kChunk);
      for (int64_t i = chunk * kChunk + threadIdx.x; i < end; i += blockDim.x) rule(run, k, i);
    }
    chunk -= chunks;
  }
}

template <typename Rule>
void update(const CudaExec& exec, const char* name, const ParameterTable& table, const Rule& rule, const int* skip) {
  int64_t chunks = 0;
  for (const auto& r : table.runs) chunks += ceil_div(r.elements, kChunk);
  if (chunks == 0) return;
  const Grid grid{.blocks = blocks_of(std::min(chunks, kMostBlocks)), .threads = kThreads};
  launch(exec, name, grid, update_kernel<Rule>, table.on_device, static_cast<int>(table.runs.size()), rule, skip);
}

// NaN compares false with everything, so it counts as not finite.
__device__ bool is_finite(float x) {
  return fabsf(x) <= FLT_MAX;
}
__device__ bool is_finite(double x) {
  return fabs(x) <= DBL_MAX;
}

template <typename T>
__global__ void flag_kernel(const T* values, int64_t count, int* flag) {
  const int64_t step = thread_count();
  int bad = 0;
  for (int64_t i = thread_index(); i < count; i += step) {
    bad |= is_finite(values[i]) ? 0 : 1;
  }
  if (__syncthreads_or(bad) != 0 && threadIdx.x == 0) atomicExch(flag, 1);
}

template <typename T>
void set_flag(const CudaExec& exec, std::span<const T> values, int* flag) {
  if (values.empty()) return;
  const auto count = std::ssize(values);
  launch(exec, "flag_non_finite", elementwise_grid(count), flag_kernel<T>, values.data(), count, flag);
}

}  // namespace

void sgd(const CudaExec& exec, const ParameterTable& table, const SgdUpdate& how, const int* skip) {
  const SgdRule rule{how.lr, how.momentum, how.weight_decay, how.nesterov};
  update(exec, "sgd_update", table, rule, skip);
}

void adamw(const CudaExec& exec, const ParameterTable& table, const AdamWUpdate& how, const int* skip) {
  const auto t = as_double(how.t);
  const auto correct1 = to_float(1.0 / (1.0 - std::pow(as_double(how.beta1), t)));
  const auto correct2 = to_float(1.0 / (1.0 - std::pow(as_double(how.beta2), t)));
  const AdamWRule rule{how.lr, how.beta1, how.beta2, how.eps, how.weight_decay, correct1, correct2};
  update(exec, "adamw_update", table, rule, skip);
}

void lars(const CudaExec& exec, const ParameterTable& table, const LarsUpdate& how, const double* squares, float* rates,
          const int* skip) {
  const auto count = std::ssize(table.runs);
  if (count == 0) return;
  launch(exec, "lars_rates", {.blocks = blocks_of(ceil_div(count, kThreads)), .threads = kThreads}, lars_rates_kernel,
         table.on_device, static_cast<int>(count), how, squares, rates);
  update(exec, "lars_update", table, LarsRule{how.momentum, how.weight_decay, rates}, skip);
}

void flag_non_finite(const CudaExec& exec, std::span<const float> values, int* flag) {
  set_flag(exec, values, flag);
}

void flag_non_finite(const CudaExec& exec, std::span<const double> values, int* flag) {
  set_flag(exec, values, flag);
}

}  // namespace simclr::optimizer_update
