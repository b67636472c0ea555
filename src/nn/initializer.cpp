#include "src/nn/initializer.h"

#include <cmath>
#include <vector>

#include "kernels/common/numbers.h"
#include "kernels/initializer/initializer.h"

namespace simclr {
namespace {

std::span<float> values_of(const Parameter& p) {
  return std::span(p.value, p.elements);
}

}  // namespace

void initialize_kaiming_normal(const Context& context, const Parameter& p, uint64_t seed) {
  SIMCLR_CHECK(p.shape.size() == 4, "{} is not a convolution", p.name);
  const double fan_out = as_double(p.shape[0] * p.shape[2] * p.shape[3]);
  const double sigma = std::sqrt(2.0 / fan_out);
  const WeightStream stream = weight_stream(seed, p.name);
  Device& device = context.device();
  const Buffer list(context.shared_device(), sizeof(HardToRound));
  draw_normal(context.exec(), stream, sigma, values_of(p), list.as<HardToRound>().data());

  HardToRound hard;
  device.download(&hard, list.data(), sizeof hard);
  SIMCLR_CHECK(hard.count <= HardToRound::kMost, "{}: {} of {} weights are hard to round", p.name, hard.count,
               p.elements);
  for (uint64_t k = 0; k < hard.count; ++k) {
    const float value = normal_weight(stream, sigma, hard.element[k]);
    device.upload(p.value + hard.element[k], &value, sizeof value);
  }
}

void initialize_uniform(const Context& context, const Parameter& p, int64_t fan_in, uint64_t seed) {
  const double bound = 1.0 / std::sqrt(as_double(fan_in));
  draw_uniform(context.exec(), weight_stream(seed, p.name), bound, values_of(p));
}

void initialize_constant(const Context& context, const Parameter& p, float value) {
  const std::vector<float> values(p.elements, value);
  context.device().upload(p.value, values.data(), values.size() * sizeof(float));
}

}  // namespace simclr
