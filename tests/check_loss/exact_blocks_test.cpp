// The blocks of double arithmetic by themselves: against long double, and that a row's result is the row's alone.
#include "src/check_loss/exact_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> numbers(int64_t count, uint32_t seed) {
  return test::to_double(test::random_numbers(count, seed));
}

// One term of eight, the others count nothing: exp itself.
double exponential(double x) {
  const double eight[8] = {x, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity};
  return exact::sum_of_exponentials(eight, 0, 8);
}

TEST(ExactBlocks, ExponentialsAreRightToTheLastBits) {
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-kInfinity), 0);
  EXPECT_EQ(exponential(-700.1), 0);
  EXPECT_EQ(exponential(-1e300), 0);
  double worst = 0;
  for (double x = 0; x >= -700; x -= 0.00173) {
    const long double expected = std::exp(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs(exponential(x) / expected - 1)));
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, 2.3e-16);  // about one unit in the last place
}

TEST(ExactBlocks, ProductsMatchLongDouble) {
  const int64_t rows = 12, columns = 48, depth = 37, a_stride = 40, b_stride = 50, out_stride = 64;
  const std::vector<double> a = numbers(rows * a_stride, 1), b = numbers(depth * b_stride, 2);
  std::vector<double> out = numbers(rows * out_stride, 3);
  const std::vector<double> before = out;
  exact::add_product({a.data(), a_stride, b.data(), b_stride, out.data(), out_stride, rows, columns, depth});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < out_stride; ++j) {
      long double expected = before[i * out_stride + j];
      for (int64_t k = 0; k < depth && j < columns; ++k)
        expected += static_cast<long double>(a[i * a_stride + k]) * static_cast<long double>(b[k * b_stride + j]);
      if (j >= columns)
        EXPECT_EQ(out[i * out_stride + j], before[i * out_stride + j]) << "outside the block";
      else
        EXPECT_NEAR(out[i * out_stride + j], static_cast<double>(expected), 1e-14);
    }
  }
}

// The same row at another place, among others: the same bits.
TEST(ExactBlocks, ARowOfAProductIsItsOwn) {
  const int64_t depth = 19, columns = 32;
  const std::vector<double> a = numbers(8 * depth, 4), b = numbers(depth * columns, 5);
  std::vector<double> whole(8 * columns), part(4 * columns);
  exact::add_product({a.data(), depth, b.data(), columns, whole.data(), columns, 8, columns, depth});
  exact::add_product({a.data() + 3 * depth, depth, b.data(), columns, part.data(), columns, 4, 16, depth});
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 16; ++j) EXPECT_EQ(part[i * columns + j], whole[(3 + i) * columns + j]);
  }
}

TEST(ExactBlocks, SumsAndMaxima) {
  std::vector<double> x = numbers(64, 6);
  x[5] = x[63] = -kInfinity;
  double top = -kInfinity;
  long double sum = 0;
  for (const double value : x) top = std::max(top, value);
  for (const double value : x) sum += std::exp(static_cast<long double>(value) - static_cast<long double>(top));
  EXPECT_EQ(exact::largest(x.data(), 64), top);
  EXPECT_NEAR(exact::sum_of_exponentials(x.data(), top, 64) / static_cast<double>(sum), 1, 4e-16);
  for (size_t at = 0; at < 64; ++at) {  // wherever it stands
    std::vector<double> one(64, -2);
    one[at] = -1;
    EXPECT_EQ(exact::largest(one.data(), 64), -1) << at;
  }

  const std::vector<double> second = numbers(64, 7);
  std::vector<double> weights = x;
  exact::add_exponentials(weights.data(), 0.3, second.data(), 64);
  for (size_t j = 0; j < 64; ++j)
    EXPECT_NEAR(weights[j], std::exp(x[j] - 0.3) + std::exp(x[j] - second[j]), 4e-16 * (1 + weights[j])) << j;
  EXPECT_EQ(weights[5], 0);
}

}  // namespace
}  // namespace simclr
