// The random numbers of a pair of elements; for initializer_cpu.cpp and initializer_cuda.cu.
#pragma once

#include "kernels/common/numbers.h"
#include "kernels/initializer/initializer.h"

namespace simclr::initializer {

inline constexpr double kTwoPi = 6.283185307179586477;

// 53 random bits in (0, 1].
constexpr double unit(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return (as_double(bits) + 1.0) * 0x1p-53;
}

struct UniformPair {
  double u, v;
};
constexpr UniformPair uniform_pair(const WeightStream& stream, int64_t pair) {
  const auto k = static_cast<uint64_t>(pair);
  const PhiloxCounter words = philox4x32({static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32),
                                          static_cast<uint32_t>(stream.name), static_cast<uint32_t>(stream.name >> 32)},
                                         stream.key);
  return {unit(words[0], words[1]), unit(words[2], words[3])};
}

// bound (2u - 1): the bracket is exact in double, so the product is the only rounding before the one to float.
constexpr float uniform_weight(double u, double bound) {
  return to_float(bound * (2.0 * u - 1.0));
}

}  // namespace simclr::initializer
