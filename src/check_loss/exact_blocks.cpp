#include "src/check_loss/exact_blocks.h"

#include <bit>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/common/simd.h"

namespace simclr::exact {
namespace {

constexpr int64_t kLanes = 8;
typedef double Vector __attribute__((vector_size(kLanes * sizeof(double))));

// exp(x) within 1.5e-16 for -700 <= x <= 700, 0 below. x = k ln 2 + r, |r| <= ln(2)/2, exp(x) = 2^k exp(r); ln 2 is
// subtracted in two parts, of which the first has 32 bits, so that k * first is exact; exp(r) is its Taylor sum up to
// r^13, whose rest is below 5e-18.
SIMCLR_INLINE double exponential(double x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, kept in the low bits
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const double clamped = x < -700.0 ? -700.0 : x;
  const double shifted = clamped * 0x1.71547652b82fep+0 + kRound;  // log2(e)
  const double k = shifted - kRound;
  const double r = (clamped - k * kLn2High) - k * kLn2Low;
  double p = 1.0 / 6227020800.0;  // 1/13!
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  const double exp_r = (p * (r * r) + r) + 1.0;
  // 2^k from its exponent bits: the low bits of `shifted` are k + 2^51.
  const double power = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023U) << 52U);
  return x < -700.0 ? 0.0 : exp_r * power;
}

// By reference: a vector as a result would need its instruction set in every caller.
SIMCLR_INLINE void load(Vector& to, const double* from) {
  std::memcpy(&to, from, sizeof to);
}

}  // namespace

// 4 x 16 sums stay in registers; the slice of b [depth, 16] in the first-level cache while all rows of a pass it.
SIMCLR_MULTIVERSION void add_product(const Product& p) {
  for (int64_t column = 0; column < p.columns; column += kColumnStep) {
    for (int64_t row = 0; row < p.rows; row += kRowStep) {
      Vector sum[kRowStep][2];
      double* out = p.out + row * p.out_stride + column;
      for (int64_t r = 0; r < kRowStep; ++r) {
        load(sum[r][0], out + r * p.out_stride);
        load(sum[r][1], out + r * p.out_stride + kLanes);
      }
      const double* a = p.a + row * p.a_stride;
      const double* b = p.b + column;
      for (int64_t k = 0; k < p.depth; ++k) {
        Vector b0, b1;
        load(b0, b + k * p.b_stride);
        load(b1, b + k * p.b_stride + kLanes);
        for (int64_t r = 0; r < kRowStep; ++r) {
          const double factor = a[r * p.a_stride + k];
          sum[r][0] += factor * b0;
          sum[r][1] += factor * b1;
        }
      }
      for (int64_t r = 0; r < kRowStep; ++r) {
        std::memcpy(out + r * p.out_stride, &sum[r][0], sizeof(Vector));
        std::memcpy(out + r * p.out_stride + kLanes, &sum[r][1], sizeof(Vector));
      }
    }
  }
}

SIMCLR_MULTIVERSION double largest(const double* x, int64_t count) {
  double lane[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) lane[l] = x[l];
  for (int64_t j = kLanes; j < count; j += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
  }
  double top = lane[0];
  for (int64_t l = 1; l < kLanes; ++l) top = lane[l] > top ? lane[l] : top;
  return top;
}

SIMCLR_MULTIVERSION double sum_of_exponentials(const double* x, double top, int64_t count) {
  double lane[kLanes] = {};
  for (int64_t j = 0; j < count; j += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += exponential(x[j + l] - top);
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

SIMCLR_MULTIVERSION void add_exponentials(double* x, double first, const double* second, int64_t count) {
  for (int64_t j = 0; j < count; ++j) x[j] = exponential(x[j] - first) + exponential(x[j] - second[j]);
}

}  // namespace simclr::exact
