// Functions of device code that the host lacks or names differently. Fast variants are the exact functions: their error
// on a GPU is larger, so tests that run on both need tolerances for it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline double rsqrt(double x) {
  return 1.0 / std::sqrt(x);
}
inline void sincospif(float x, float* sine, float* cosine) {
  const double angle = 3.14159265358979323846 * std::remainder(static_cast<double>(x), 2.0);
  *sine = static_cast<float>(std::sin(angle));
  *cosine = static_cast<float>(std::cos(angle));
}
inline float sinpif(float x) {
  float sine = 0.0F;
  float cosine = 0.0F;
  sincospif(x, &sine, &cosine);
  return sine;
}
inline float cospif(float x) {
  float sine = 0.0F;
  float cosine = 0.0F;
  sincospif(x, &sine, &cosine);
  return cosine;
}

inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}
inline float __log2f(float x) {
  return std::log2(x);
}
inline float __powf(float x, float y) {
  return std::pow(x, y);
}
inline float __sinf(float x) {
  return std::sin(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float fdividef(float x, float y) {
  return x / y;
}
inline float __saturatef(float x) {
  return x >= 1.0F ? 1.0F : (x > 0.0F ? x : 0.0F);  // NaN becomes 0
}

// Rounded to nearest and never contracted into a fused multiply-add.
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0F / x;
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}
inline float __frsqrt_rn(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline float __fmaf_rn(float x, float y, float z) {
  return std::fma(x, y, z);
}
inline double __dadd_rn(double x, double y) {
  return x + y;
}
inline double __dmul_rn(double x, double y) {
  return x * y;
}
inline double __ddiv_rn(double x, double y) {
  return x / y;
}
inline double __dsqrt_rn(double x) {
  return std::sqrt(x);
}
inline double __fma_rn(double x, double y, double z) {
  return std::fma(x, y, z);
}

inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline int __float2int_rn(float x) {
  return static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rd(float x) {
  return static_cast<int>(std::floor(x));
}
inline int __float2int_rz(float x) {
  return static_cast<int>(x);
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<uint64_t>(x) * y) >> 32);
}

// Loads and stores that hint at the caches.
template <typename T>
T __ldg(const T* p) {
  return *p;
}
template <typename T>
T __ldcs(const T* p) {
  return *p;
}
template <typename T>
T __ldcg(const T* p) {
  return *p;
}
template <typename T>
void __stcs(T* p, std::type_identity_t<T> value) {
  *p = value;
}
template <typename T>
void __stcg(T* p, std::type_identity_t<T> value) {
  *p = value;
}

// As nvcc has them: of a number and a NaN, the number.
template <typename T, typename U>
requires std::is_arithmetic_v<T> && std::is_arithmetic_v<U>
constexpr std::common_type_t<T, U> min(T a, U b) {
  const auto x = static_cast<std::common_type_t<T, U>>(a);
  const auto y = static_cast<std::common_type_t<T, U>>(b);
  return y < x || x != x ? y : x;
}
template <typename T, typename U>
requires std::is_arithmetic_v<T> && std::is_arithmetic_v<U>
constexpr std::common_type_t<T, U> max(T a, U b) {
  const auto x = static_cast<std::common_type_t<T, U>>(a);
  const auto y = static_cast<std::common_type_t<T, U>>(b);
  return x < y || x != x ? y : x;
}
// NOLINTEND(readability-identifier-naming)
