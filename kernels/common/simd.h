// One channel block (8 or 16 floats) as a vector of the compiler's own vector extension: lowered to whatever registers
// the instruction set has, the same arithmetic on each. Only for *_cpu.cpp files of ops.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/bfloat16.h"
#include "kernels/common/views.h"

#define SIMCLR_INLINE [[gnu::always_inline]] inline

namespace simclr {

// The bits of a block of 16 floats, and of 16 bfloat16.
typedef uint32_t Words __attribute__((vector_size(kMaxChannelBlock * sizeof(uint32_t))));
typedef uint16_t Halves __attribute__((vector_size(kMaxChannelBlock * sizeof(uint16_t))));

template <int L>
struct Lanes {
  typedef float Float __attribute__((vector_size(L * sizeof(float))));

  SIMCLR_INLINE static Float load(const float* p) {
    Float v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  SIMCLR_INLINE static void store(float* p, Float v) { std::memcpy(p, &v, sizeof v); }
  // The same of bfloat16.h, for a block.
  SIMCLR_INLINE static Float load(const Bfloat16* p) {
    static_assert(L == kMaxChannelBlock, "processors with products of bfloat16 have blocks of 16 channels");
    Halves half;
    std::memcpy(&half, p, sizeof half);
    return reinterpret_cast<Float>(__builtin_convertvector(half, Words) << 16);
  }
  SIMCLR_INLINE static void store(Bfloat16* p, Float v) {
    const auto bits = reinterpret_cast<Words>(v);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
    const Words stored = v == v ? rounded : Words{} + 0x7fff;
    const Halves half = __builtin_convertvector(stored, Halves);
    std::memcpy(p, &half, sizeof half);
  }
  SIMCLR_INLINE static Float zero() { return Float{}; }
  // max(v, 0) that keeps NaN, so that a diverging network cannot hide behind a ReLU.
  SIMCLR_INLINE static Float relu(Float v) { return v < zero() ? zero() : v; }
  // v where gate > 0, else 0: the derivative of relu.
  SIMCLR_INLINE static Float where_positive(Float gate, Float v) { return gate > zero() ? v : zero(); }
};

}  // namespace simclr
