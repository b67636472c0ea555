// exp for arguments <= 0 in single precision, written so that the compiler can vectorize a loop over it.
// Not a general expf: positive arguments are outside its contract.
#pragma once

#include <bit>
#include <cstdint>

namespace simclr {

// Below this the result is 0 instead of a denormal number; exp(-87) = 1.6e-38.
inline constexpr float kExpUnderflow = -87.0F;

// exp(x) for x <= 0; 0 below kExpUnderflow and for -infinity; NaN for NaN. Error below 1.1 ulp (over every
// float in [-87, 0]: 1.01 with fused multiply-add, 0.98 without). Algebra: x = k ln 2 + r with |r| <= ln(2)/2, exp(x) =
// 2^k exp(r); ln 2 is subtracted in two parts, of which the first has 10 bits, so that k * first is exact; exp(r) = 1 +
// r + r^2 p(r), p of degree 5 (the coefficients of Cephes' expf, S. Moshier). The compiler may fuse products with sums,
// so bits belong to the instruction set.
__attribute__((always_inline)) inline float exp_nonpositive(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  const float clamped = x < kExpUnderflow ? kExpUnderflow : x;  // keeps NaN
  const float shifted = clamped * 1.44269504F + kRound;
  const float k = shifted - kRound;
  const float r = (clamped - k * 0.693359375F) - k * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float exp_r = p * (r * r) + r + 1.0F;
  // 2^k from its exponent bits: the low bits of `shifted` are k + 0x4B400000.
  const auto biased = static_cast<uint32_t>(std::bit_cast<uint32_t>(shifted) + 127U) << 23;
  const float power = std::bit_cast<float>(biased);
  return x < kExpUnderflow ? 0.0F : exp_r * power;
}

}  // namespace simclr
