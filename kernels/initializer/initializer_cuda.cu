// initializer on CUDA. A thread draws pairs of elements.
#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/initializer/initializer_device.h"
#include "kernels/initializer/random_pair.h"
#include "kernels/initializer/rounding.h"

namespace simclr::initializer {
namespace {

__device__ void add_to_list(HardToRound* hard, int64_t element) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  const uint64_t place = atomicAdd(reinterpret_cast<unsigned long long*>(&hard->count), 1ull);
  if (place < HardToRound::kMost) hard->element[place] = element;
}

__global__ void draw_normal_kernel(WeightStream stream, double sigma, int64_t count, float* values, HardToRound* hard) {
  const int64_t step = thread_count();
  for (int64_t k = thread_index(); 2 * k < count; k += step) {
    const UniformPair random = uniform_pair(stream, k);
    const double radius = sigma * sqrt(-2.0 * log(random.u));
    const double angle = kTwoPi * random.v;
    const double pair[2] = {radius * cos(angle), radius * sin(angle)};
    for (int64_t i = 2 * k; i < 2 * k + 2 && i < count; ++i) {
      const double v = pair[i - 2 * k];
      const bool is_hard = is_hard_to_round(v);
      values[i] = is_hard ? nanf("") : to_float(v);
      if (is_hard) add_to_list(hard, i);
    }
  }
}

__global__ void draw_uniform_kernel(WeightStream stream, double bound, int64_t count, float* values) {
  const int64_t step = thread_count();
  for (int64_t k = thread_index(); 2 * k < count; k += step) {
    const UniformPair random = uniform_pair(stream, k);
    values[2 * k] = uniform_weight(random.u, bound);
    if (2 * k + 1 < count) values[2 * k + 1] = uniform_weight(random.v, bound);
  }
}

}  // namespace

void draw_normal(const CudaExec& exec, const WeightStream& stream, double sigma, std::span<float> values,
                 HardToRound* hard) {
  if (values.empty()) return;
  const auto count = std::ssize(values);
  launch(exec, "draw_normal", elementwise_grid(ceil_div(count, 2)), draw_normal_kernel, stream, sigma, count,
         values.data(), hard);
}

void draw_uniform(const CudaExec& exec, const WeightStream& stream, double bound, std::span<float> values) {
  if (values.empty()) return;
  const auto count = std::ssize(values);
  launch(exec, "draw_uniform", elementwise_grid(ceil_div(count, 2)), draw_uniform_kernel, stream, bound, count,
         values.data());
}

}  // namespace simclr::initializer
