// What the tests of kernels share: plain arrays in and out of the device's layout, outputs and scratch that start as
// NaN, and comparisons that name the worst element. Not a test, and nothing here computes what an op computes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/common/views.h"
#include "src/device/context.h"

namespace simclr::test {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kUnit = 0x1p-24;  // unit roundoff of float: |fl(a op b) - (a op b)| <= u |a op b|

// |error| <= sum_error(n) * sum |a_i b_i| for a dot product of n terms in float, in any order, fused or not
// (Higham, Accuracy and Stability of Numerical Algorithms, eq. 3.5): n u / (1 - n u). One more u rounds the result.
inline double sum_error(int64_t terms) {
  const double nu = static_cast<double>(terms + 1) * kUnit;
  return nu / (1.0 - nu);
}

// Uniform in [low, high), a function of (seed, index).
inline std::vector<float> random_values(int64_t count, uint32_t seed, float low = -1.0F, float high = 1.0F) {
  PhiloxStream stream(philox_key(seed, RandomPurpose::kInitialWeights), 0, 0, 0);
  std::vector<float> values(count);
  for (float& v : values) v = stream.uniform(low, high);
  return values;
}

inline std::vector<double> widen(std::span<const float> values) {
  return {values.begin(), values.end()};
}

inline std::vector<double> absolute(std::span<const float> values) {
  std::vector<double> result;
  for (const float v : values) result.push_back(std::fabs(v));
  return result;
}

// A context whose scratch memory is all NaN, so that an op that reads what it has not written is found.
class PoisonedContext {
 public:
  PoisonedContext(int threads, const ScratchNeed& need, Precision precision = Precision::kFp32)
      : context_(threads, precision) {
    context_.reserve(need);
    const auto& cpu = std::get<CpuExec>(context_.exec());
    if (cpu.workspace) std::memset(cpu.workspace, 0xFF, cpu.workspace_bytes);
    if (cpu.thread_scratch)
      std::memset(cpu.thread_scratch, 0xFF, cpu.thread_scratch_bytes * static_cast<size_t>(threads));
  }
  const Exec& exec() const { return context_.exec(); }

 private:
  Context context_;
};

struct Shape {
  int64_t shards = 1, samples = 1, channels = 1, height = 1, width = 1;
  int64_t rows() const { return shards * samples; }
  int64_t elements() const { return rows() * channels * height * width; }
};

// Feature maps in the device's layout that own their memory.
class FeatureMaps {
 public:
  static constexpr Precision kPrecision = Precision::kFp32;

  // NaN everywhere, padding included: the op has to write all of it.
  explicit FeatureMaps(const Shape& s)
      : view_{nullptr, s.shards, s.samples, s.channels, s.height, s.width},
        buffer_(static_cast<size_t>(view_.elements()) * sizeof(float)) {
    view_.data = buffer_.as<float>().data();
    for (float& v : buffer_.as<float>()) v = kNaN;
  }
  // plain [shards*samples, C, H, W]; the padding channels are zero.
  FeatureMaps(const Shape& s, std::span<const float> plain) : FeatureMaps(s) {
    for (float& v : buffer_.as<float>()) v = 0.0F;
    for_each([&](size_t at, float* v) { *v = plain[at]; });
  }

  Activation view() const { return view_; }
  std::span<float> all() const { return buffer_.as<float>(); }  // padding included
  std::vector<float> plain() const {
    std::vector<float> result(view_.shards * view_.samples * view_.channels * places());
    for_each([&](size_t at, const float* v) { result[at] = *v; });
    return result;
  }
  bool padding_is_zero() const {
    const int64_t block = channel_block();
    for (int64_t i = 0; i < view_.shards * view_.samples; ++i)
      for (int64_t c = view_.channels; c < view_.padded_channels(); ++c)
        for (int64_t p = 0; p < places(); ++p)
          if (view_.sample(i)[(c / block * places() + p) * block + c % block] != 0.0F) return false;
    return true;
  }

 private:
  int64_t places() const { return view_.height * view_.width; }
  // f(index in the plain array, its place in the blocked layout)
  template <typename F>
  void for_each(F&& f) const {
    const int64_t block = channel_block();
    size_t at = 0;
    for (int64_t i = 0; i < view_.shards * view_.samples; ++i)
      for (int64_t c = 0; c < view_.channels; ++c)
        for (int64_t p = 0; p < places(); ++p, ++at)
          f(at, view_.sample(i) + (c / block * places() + p) * block + c % block);
  }

  ActivationView<float*> view_;
  Buffer buffer_;
};

// Shards [first, first + count) of a view, as a rank that owns them sees them.
template <typename View>
View shards_of(View v, int64_t first, int64_t count) {
  v.data = v.shard(first);
  v.shards = count;
  return v;
}

// Byte for byte, so that -0 differs from 0 and NaN equals itself.
inline testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

// |got - want| <= bound(i) for every element; NaN never passes.
template <typename BoundFn>
testing::AssertionResult within(std::span<const float> got, std::span<const double> want, BoundFn&& bound) {
  if (got.size() != want.size()) return testing::AssertionFailure() << got.size() << " instead of " << want.size();
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(got[i] - want[i]);
    double excess = difference == 0 ? 0 : difference / bound(i);
    if (std::isnan(excess)) excess = std::numeric_limits<double>::infinity();
    if (excess > worst) worst = excess, at = i;
  }
  if (worst <= 1) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "element " << at << " is " << got[at] << " instead of " << want[at] << ", "
                                     << worst << " times the bound";
}

// max |got - want| / max |want|; infinite when the sizes differ or anything is NaN.
inline double relative_error(std::span<const float> got, std::span<const double> want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double error = 0, scale = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double e = std::fabs(got[i] - want[i]);
    if (!std::isfinite(e)) return std::numeric_limits<double>::infinity();
    error = std::max(error, e);
    scale = std::max(scale, std::fabs(want[i]));
  }
  return error == 0 ? 0 : error / scale;
}

// EXPECT_THAT(f, fires("3 rows")): f ends in a SIMCLR_CHECK whose line has this text.
inline auto fires(const char* text) {
  return testing::Throws<Error>(testing::AllOf(
      testing::Property(&Error::code, ExitCode::kOther),
      testing::Property(&Error::what, testing::AllOf(testing::HasSubstr("internal error"), testing::HasSubstr(text)))));
}

// EXPECT_THAT(f, refuses(ExitCode::kDevice, "no plan")): f ends in an Error with this code whose line has this text.
inline auto refuses(ExitCode code, const char* text) {
  return testing::Throws<Error>(
      testing::AllOf(testing::Property(&Error::code, code), testing::Property(&Error::what, testing::HasSubstr(text))));
}

}  // namespace simclr::test
