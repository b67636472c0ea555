#include "kernels/initializer/initializer.h"

#include "kernels/initializer/initializer_device.h"

namespace simclr {

// The name's part of the counter: FNV-1a, 64 bit.
WeightStream weight_stream(uint64_t seed, std::string_view parameter_name) {
  uint64_t name = 14695981039346656037ull;
  for (const char c : parameter_name) name = (name ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return {philox_key(seed, RandomPurpose::kInitialWeights), name};
}

void draw_normal(const Exec& exec, const WeightStream& stream, double sigma, std::span<float> values,
                 HardToRound* hard) {
  SIMCLR_CHECK(sigma > 0 && hard, "normal weights with standard deviation {}", sigma);
  std::visit([&](const auto& device) { initializer::draw_normal(device, stream, sigma, values, hard); }, exec);
}

void draw_uniform(const Exec& exec, const WeightStream& stream, double bound, std::span<float> values) {
  SIMCLR_CHECK(bound > 0, "uniform weights up to {}", bound);
  std::visit([&](const auto& device) { initializer::draw_uniform(device, stream, bound, values); }, exec);
}

}  // namespace simclr
