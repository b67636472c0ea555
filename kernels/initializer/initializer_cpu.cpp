#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "kernels/initializer/initializer_device.h"
#include "kernels/initializer/random_pair.h"

namespace simclr {
namespace {

constexpr int64_t kChunk = 1 << 14;  // elements of one task, whole pairs

// The pairs f(u, v) one after the other; the second of the last one is left out where values are odd in number.
template <typename F>
void fill(const CpuExec& exec, const WeightStream& stream, std::span<float> values, F&& f) {
  const auto count = std::ssize(values);
  parallel_for(exec, (count + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
    const int64_t end = std::min(count, (chunk + 1) * kChunk);
    for (int64_t i = chunk * kChunk; i < end; i += 2) {
      const auto pair = f(initializer::uniform_pair(stream, i / 2));
      for (int64_t k = i; k < std::min(i + 2, end); ++k) values[k] = pair[k - i];
    }
  });
}

std::array<float, 2> normal_pair(const initializer::UniformPair& random, double sigma) {
  const double radius = sigma * std::sqrt(-2.0 * std::log(random.u));
  const double angle = initializer::kTwoPi * random.v;
  return {to_float(radius * std::cos(angle)), to_float(radius * std::sin(angle))};
}

}  // namespace

float normal_weight(const WeightStream& stream, double sigma, int64_t element) {
  return normal_pair(initializer::uniform_pair(stream, element / 2), sigma)[element % 2];
}

namespace initializer {

void draw_normal(const CpuExec& exec, const WeightStream& stream, double sigma, std::span<float> values,
                 HardToRound* /*hard*/) {
  fill(exec, stream, values, [&](const UniformPair& random) { return normal_pair(random, sigma); });
}

void draw_uniform(const CpuExec& exec, const WeightStream& stream, double bound, std::span<float> values) {
  fill(exec, stream, values, [&](const UniformPair& random) {
    return std::array{uniform_weight(random.u, bound), uniform_weight(random.v, bound)};
  });
}

}  // namespace initializer
}  // namespace simclr
