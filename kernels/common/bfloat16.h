// bfloat16 on the host: the upper half of a float. Elements are stored so and computed with as float, as storage.cuh
// has it for the GPU. Conversions are shifts, which the compiler turns into vectors; the processor's own instruction
// would flush denormals.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/elements.h"

namespace simclr {

struct Bfloat16 {
  uint16_t bits;
};
template <>
struct DataTypeOf<Bfloat16> {
  static constexpr DataType value = DataType::kBfloat16;
};

[[gnu::always_inline]] inline float as_float(float v) {
  return v;
}
[[gnu::always_inline]] inline float as_float(Bfloat16 v) {
  return std::bit_cast<float>(uint32_t{v.bits} << 16);
}

// To nearest, ties to even; every NaN becomes 0x7fff, as on the GPU.
[[gnu::always_inline]] inline Bfloat16 to_bfloat16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(v == v ? rounded : 0x7fff)};
}

// v as an element of T: itself, or rounded.
template <typename T>
[[gnu::always_inline]] inline T element_of(float v) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return v;
  } else {
    return to_bfloat16(v);
  }
}

// to[i] = from[i], rounded.
void to_bfloat16(const float* from, int64_t count, Bfloat16* to);

// Calls f(T()) with the type that `type` stands for.
template <typename F>
void with_element_type(DataType type, F&& f) {
  if (type == DataType::kBfloat16) {
    f(Bfloat16());
  } else {
    f(float());
  }
}

}  // namespace simclr
