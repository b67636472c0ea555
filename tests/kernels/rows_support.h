// What the tests of the loss share: inputs, padded matrices that start as NaN, and measures of error.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/common/views.h"

namespace simclr::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A matrix whose every element is NaN until somebody writes it, padding included.
class TestMatrix {
 public:
  TestMatrix(int64_t rows, int64_t cols, int64_t stride)
      : rows_(rows), cols_(cols), stride_(stride), data_(rows * stride, kNan) {}
  TestMatrix(int64_t rows, int64_t cols) : TestMatrix(rows, cols, cols) {}
  TestMatrix(std::span<const float> dense, int64_t rows, int64_t cols, int64_t stride)
      : TestMatrix(rows, cols, stride) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(&dense[i * cols], cols, view().row(i));
  }

  FloatMatrix view() { return {data_.data(), rows_, cols_, stride_}; }
  // Rows without their padding.
  std::vector<float> dense() const {
    std::vector<float> out;
    for (int64_t i = 0; i < rows_; ++i) out.insert(out.end(), &data_[i * stride_], &data_[i * stride_] + cols_);
    return out;
  }
  bool padding_is_zero() const {
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t c = cols_; c < stride_; ++c) {
        if (data_[i * stride_ + c] != 0.0F) return false;
      }
    }
    return true;
  }

 private:
  int64_t rows_, cols_, stride_;
  std::vector<float> data_;
};

template <typename T>
std::vector<double> to_double(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}

// Roughly normal numbers (a sum of four uniform ones), a function of (seed, count) alone.
inline std::vector<float> random_numbers(int64_t count, uint32_t seed) {
  PhiloxStream random(PhiloxKey{seed, 77}, 0, 0, 0);
  std::vector<float> out(count);
  for (float& x : out)
    x = random.uniform(-1, 1) + random.uniform(-1, 1) + random.uniform(-1, 1) + random.uniform(-1, 1);
  return out;
}

// Projector outputs z [2B, C] in the global row order: view 2 = view 1 + noise. With noise 0.2 the two views of an
// image have similarity about 1 / sqrt(1 + 0.04) = 0.98.
inline std::vector<float> make_views(int64_t batch, int64_t columns, float noise, uint32_t seed) {
  std::vector<float> z = random_numbers(2 * batch * columns, seed);
  const int64_t half = batch * columns;
  for (int64_t k = 0; k < half; ++k) z[half + k] = z[k] + noise * z[half + k];
  return z;
}

// Row (shard s, view v, image i) of a matrix by shards is row v*B + s*n + i of the global one; C numbers a row.
template <typename T>
std::vector<T> by_shards(const std::vector<T>& global, int64_t shards, int64_t columns) {
  const int64_t batch = std::ssize(global) / columns / 2, n = batch / shards;
  std::vector<T> out;
  for (int64_t s = 0; s < shards; ++s) {
    for (int64_t v = 0; v < 2; ++v) {
      const T* from = &global[(v * batch + s * n) * columns];
      out.insert(out.end(), from, from + n * columns);
    }
  }
  return out;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}
inline double norm(const std::vector<double>& a) {
  return std::sqrt(dot(a, a));
}

// ||a - b|| / ||b||; NaN anywhere gives NaN, which no EXPECT_LE passes.
template <typename T>
double relative_error(const std::vector<T>& actual, const std::vector<double>& expected) {
  std::vector<double> difference = to_double(actual);
  for (size_t k = 0; k < expected.size(); ++k) difference[k] -= expected[k];
  return actual.size() == expected.size() ? norm(difference) / norm(expected) : NAN;
}

// Where a gradient points against where it should (1 - cosine), and how long it is (|actual| / |expected|).
struct Comparison {
  double direction_error, scale;
};
template <typename T>
Comparison compare(const std::vector<T>& actual, const std::vector<double>& expected) {
  const std::vector<double> a = to_double(actual);
  return {.direction_error = 1 - dot(a, expected) / (norm(a) * norm(expected)), .scale = norm(a) / norm(expected)};
}

}  // namespace simclr::test
