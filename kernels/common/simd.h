// One channel block (8 or 16 floats) as a vector of the compiler's own vector extension: lowered to whatever registers
// the instruction set has, the same arithmetic on each. Only for *_cpu.cpp files of ops.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/views.h"

#define SIMCLR_INLINE [[gnu::always_inline]] inline

namespace simclr {

template <int L>
struct Lanes {
  typedef float Float __attribute__((vector_size(L * sizeof(float))));

  SIMCLR_INLINE static Float load(const float* p) {
    Float v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  SIMCLR_INLINE static void store(float* p, Float v) { std::memcpy(p, &v, sizeof v); }
  SIMCLR_INLINE static Float zero() { return Float{}; }
  // max(v, 0) that keeps NaN, so that a diverging network cannot hide behind a ReLU.
  SIMCLR_INLINE static Float relu(Float v) { return v < zero() ? zero() : v; }
  // v where gate > 0, else 0: the derivative of relu.
  SIMCLR_INLINE static Float where_positive(Float gate, Float v) { return gate > zero() ? v : zero(); }
};

}  // namespace simclr
