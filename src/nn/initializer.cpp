#include "src/nn/initializer.h"

#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/philox.h"
#include "kernels/common/views.h"

namespace simclr {
namespace {

// FNV-1a, 64 bit: the parameter's name as part of the counter.
uint64_t hash_name(std::string_view name) {
  uint64_t h = 14695981039346656037ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

// The parameter's values from f(words, even, odd): four random words for every block of two elements.
template <typename F>
void fill_in_pairs(Device& device, const Parameter& p, uint64_t seed, F&& f) {
  std::vector<float> values(static_cast<size_t>(round_up(p.elements, 2)));
  const PhiloxKey key = philox_key(seed, RandomPurpose::kInitialWeights);
  const uint64_t name = hash_name(p.name);
  for (int64_t i = 0; i < p.elements; i += 2) {
    const auto block = static_cast<uint64_t>(i / 2);
    f(philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(name),
                  static_cast<uint32_t>(name >> 32)},
                 key),
      values[static_cast<size_t>(i)], values[static_cast<size_t>(i + 1)]);
  }
  device.upload(p.value, values.data(), static_cast<size_t>(p.elements) * sizeof(float));
}

// 53 random bits in (0, 1].
double unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return (static_cast<double>(bits) + 1.0) * 0x1p-53;
}

}  // namespace

void initialize_kaiming_normal(Device& device, const Parameter& p, uint64_t seed) {
  SIMCLR_CHECK(p.shape.size() == 4, "{} is not a convolution", p.name);
  const auto fan_out = static_cast<double>(p.shape[0] * p.shape[2] * p.shape[3]);
  const double sigma = std::sqrt(2.0 / fan_out);
  fill_in_pairs(device, p, seed, [&](const PhiloxCounter& words, float& even, float& odd) {
    // Box-Muller: two normals of two uniforms.
    const double radius = sigma * std::sqrt(-2.0 * std::log(unit(words[0], words[1])));
    const double angle = 2.0 * std::numbers::pi * unit(words[2], words[3]);
    even = static_cast<float>(radius * std::cos(angle));
    odd = static_cast<float>(radius * std::sin(angle));
  });
}

void initialize_uniform(Device& device, const Parameter& p, int64_t fan_in, uint64_t seed) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  fill_in_pairs(device, p, seed, [&](const PhiloxCounter& words, float& even, float& odd) {
    even = static_cast<float>(bound * (2.0 * unit(words[0], words[1]) - 1.0));
    odd = static_cast<float>(bound * (2.0 * unit(words[2], words[3]) - 1.0));
  });
}

void initialize_constant(Device& device, const Parameter& p, float value) {
  const std::vector<float> values(static_cast<size_t>(p.elements), value);
  device.upload(p.value, values.data(), values.size() * sizeof(float));
}

}  // namespace simclr
