// What the tests of bfloat16 on the CPU share: memory that holds it, and feature maps and matrices made of it. Inputs
// are given as floats and rounded, results come back as floats, which holds every bfloat16 exactly.
#pragma once

#include <span>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "tests/kernels/kernel_support.h"

namespace simclr::test {

// Fixture of tests that need a processor with products of bfloat16.
class Bfloat16Test : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

inline std::vector<float> rounded(std::span<const float> values) {
  std::vector<float> result;
  for (const float v : values) result.push_back(as_float(to_bfloat16(v)));
  return result;
}

// Aligned as a device's buffers are.
class Bfloat16Array {
 public:
  explicit Bfloat16Array(size_t count) : buffer_(count * sizeof(Bfloat16)) {  // NaN
    for (Bfloat16& v : elements()) v = to_bfloat16(kNaN);
  }
  explicit Bfloat16Array(std::span<const float> values) : Bfloat16Array(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) elements()[i] = to_bfloat16(values[i]);
  }
  std::span<Bfloat16> elements() const { return buffer_.as<Bfloat16>(); }
  Bfloat16* data() const { return elements().data(); }
  std::vector<float> values() const {
    std::vector<float> result;
    for (const Bfloat16 v : elements()) result.push_back(as_float(v));
    return result;
  }

 private:
  Buffer buffer_;
};

// FeatureMaps of kernel_support.h, stored as bfloat16.
class Bfloat16Maps {
 public:
  static constexpr Precision kPrecision = Precision::kBf16;

  explicit Bfloat16Maps(const Shape& s) : Bfloat16Maps(s, FeatureMaps(s)) {}  // NaN everywhere
  Bfloat16Maps(const Shape& s, std::span<const float> plain) : Bfloat16Maps(s, FeatureMaps(s, plain)) {}

  Activation view() const {
    return {array_.data(), shape_.shards, shape_.samples, shape_.channels, shape_.height, shape_.width};
  }
  std::vector<float> plain() const { return as_floats().plain(); }
  bool padding_is_zero() const { return as_floats().padding_is_zero(); }

 private:
  Bfloat16Maps(const Shape& s, const FeatureMaps& floats) : shape_(s), array_(floats.all()) {}
  FeatureMaps as_floats() const {
    FeatureMaps floats(shape_);
    std::ranges::copy(array_.values(), floats.all().begin());
    return floats;
  }

  Shape shape_;
  Bfloat16Array array_;
};

// A row-major matrix with padded rows.
class Bfloat16Matrix {
 public:
  Bfloat16Matrix(int64_t rows, int64_t cols)  // NaN everywhere
      : rows_(rows), cols_(cols), array_(static_cast<size_t>(rows * padded_cols(cols))) {}
  Bfloat16Matrix(int64_t rows, int64_t cols, std::span<const float> plain) : Bfloat16Matrix(rows, cols) {
    for (int64_t i = 0; i < rows; ++i)  // the padding stays NaN: it must not be read
      for (int64_t j = 0; j < cols; ++j) array_.elements()[at(i, j)] = to_bfloat16(plain[i * cols + j]);
  }
  Matrix view() const { return {array_.data(), rows_, cols_, padded_cols(cols_)}; }
  std::vector<float> plain() const {
    std::vector<float> result;
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < cols_; ++j) result.push_back(as_float(array_.elements()[at(i, j)]));
    return result;
  }
  bool padding_is_zero() const {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = cols_; j < padded_cols(cols_); ++j)
        if (array_.elements()[at(i, j)].bits != 0) return false;
    return true;
  }

 private:
  size_t at(int64_t i, int64_t j) const { return static_cast<size_t>(i * padded_cols(cols_) + j); }

  int64_t rows_, cols_;
  Bfloat16Array array_;
};

}  // namespace simclr::test
