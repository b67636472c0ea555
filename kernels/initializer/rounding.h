// Which normal numbers two libraries might round to different floats.
//
// Relative errors of sigma sqrt(-2 ln u) cos(2 pi v), in units of 2^-53, half an ulp at most: the angle is the same
// double everywhere; the root, two products and the one with sigma are correctly rounded (1 each). Tables of errors,
// made by testing, allow ln 1 ulp in CUDA (CUDA Programming Guide, "Mathematical Functions") and in glibc ("Known
// Maximum Errors in Math Functions"), cos and sin 2 in CUDA and 1 in glibc, from the correctly rounded result: 3 units
// for ln, halved by the root, and 5 or 3. That is 9.5 in CUDA and 7.5 in glibc: two results lie at most 17 apart. 2^-48
// is 32.
#pragma once

#include "kernels/common/numbers.h"

namespace simclr::initializer {

inline constexpr double kMargin = 0x1p-48;

// Whether a number within kMargin of v may round to another float than v does.
constexpr bool is_hard_to_round(double v) {
  return to_float(v * (1.0 - kMargin)) != to_float(v * (1.0 + kMargin));
}

}  // namespace simclr::initializer
