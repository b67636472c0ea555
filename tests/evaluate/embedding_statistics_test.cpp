// Eigenvalues of matrices whose eigenvalues are known; geometry by hand; threads.
#include "src/evaluate/embedding_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/common/philox.h"
#include "src/evaluate/symmetric_eigenvalues.h"

namespace simclr {
namespace {

void expect_eigenvalues(const std::vector<double>& matrix, const std::vector<double>& expected, double near = 1e-13) {
  const auto found = symmetric_eigenvalues(matrix, static_cast<int64_t>(expected.size()));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], near) << i;
}

TEST(SymmetricEigenvalues, ByHand) {
  expect_eigenvalues({5}, {5});
  expect_eigenvalues({2, NAN, 1, 2}, {1, 3});  // the upper triangle is not read
  expect_eigenvalues({3, 0, 0, 0, -1, 0, 0, 0, 2}, {-1, 2, 3});
  expect_eigenvalues({2, 0, 0, -1, 2, 0, 0, -1, 2}, {2 - std::sqrt(2.0), 2, 2 + std::sqrt(2.0)});
  expect_eigenvalues({1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 3});
  expect_eigenvalues(std::vector<double>(16, 0.0), {0, 0, 0, 0});
}

TEST(SymmetricEigenvalues, OfASecondDifference) {
  // 2 - 2 cos(k pi / (n + 1)), k = 1..n
  constexpr int kSize = 60;
  std::vector<double> matrix(kSize * kSize), expected;
  for (size_t i = 0; i < kSize; ++i) {
    matrix[i * kSize + i] = 2;
    if (i > 0) matrix[i * kSize + i - 1] = -1;
    expected.push_back(2 - 2 * std::cos(static_cast<double>(i + 1) * M_PI / (kSize + 1)));
  }
  expect_eigenvalues(matrix, expected);
}

TEST(SymmetricEigenvalues, OfADiagonalTurnedAround) {
  // Q D Q with the reflection Q = 1 - 2 v v^T: full, and its eigenvalues are D.
  constexpr size_t kSize = 40;
  PhiloxStream random({1, 2}, 0, 0, 0);
  std::vector<double> v(kSize), expected, matrix(kSize * kSize);
  double square = 0;
  for (double& x : v) {
    x = random.uniform(-1, 1);
    square += x * x;
  }
  for (double& x : v) x /= std::sqrt(square);
  for (size_t i = 0; i < kSize; ++i) expected.push_back(static_cast<double>(i / 2) - 5);  // each of them twice
  for (size_t i = 0; i < kSize; ++i)
    for (size_t j = 0; j < kSize; ++j)
      for (size_t k = 0; k < kSize; ++k)
        matrix[i * kSize + j] +=
            ((i == k ? 1 : 0) - 2 * v[i] * v[k]) * expected[k] * ((j == k ? 1 : 0) - 2 * v[j] * v[k]);
  expect_eigenvalues(matrix, expected, 1e-12);
}

EmbeddingStatistics measure(const std::vector<float>& values, int64_t columns, int threads = 1) {
  return measure_embeddings(CpuExec{.threads = threads},
                            {values.data(), static_cast<int64_t>(values.size()) / columns, columns, columns});
}

TEST(EmbeddingStatistics, ByHand) {
  // Two images: views (1, 0) and (0, 1); (-1, 0) and (0, 1).
  const EmbeddingStatistics s = measure({1, 0, 0, 1, -1, 0, 0, 1}, 2);
  EXPECT_NEAR(s.alignment, 2, 1e-15);                                    // |(1, -1)|^2 both times
  EXPECT_NEAR(s.uniformity, std::log((std::exp(-8.0) + 1) / 2), 1e-15);  // views 1 are 2 apart, views 2 are one point
  EXPECT_NEAR(s.effective_rank, 2, 1e-14);                               // both singular values are sqrt 2
}

TEST(EmbeddingStatistics, OnePointIsCollapsed) {
  const EmbeddingStatistics s = measure({0.6F, 0.8F, 0.6F, 0.8F, 0.6F, 0.8F, 0.6F, 0.8F}, 2);
  EXPECT_EQ(s.alignment, 0);
  EXPECT_NEAR(s.uniformity, 0, 1e-15);
  EXPECT_NEAR(s.effective_rank, 1, 1e-6);
  EXPECT_LT(s.effective_rank, kCollapsedRank);
}

TEST(EmbeddingStatistics, RankOfUnequalDirections) {
  // Along x nine times, along y once: singular values 3 and 1; p = 3/4 and 1/4.
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.insert(values.end(), {i == 4 ? 0.0F : 1.0F, i == 4 ? 1.0F : 0.0F, 0.0F});
  EXPECT_NEAR(measure(values, 3).effective_rank, std::exp(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)), 1e-12);
}

std::vector<float> random_directions(int64_t rows, int64_t columns) {
  PhiloxStream random({5, 6}, 0, 0, 0);
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<float> row;
    float square = 0;
    for (int64_t k = 0; k < columns; ++k) {
      row.push_back(random.uniform(-1, 1));
      square += row.back() * row.back();
    }
    for (float& x : row) values.push_back(x / std::sqrt(square));
  }
  return values;
}

TEST(EmbeddingStatistics, WideAndTallMatricesAgreeAndThreadsChangeNoBit) {
  const auto tall = random_directions(60, 17);
  std::vector<float> wide;  // the same with 50 more columns of zeros: more columns than rows
  for (size_t i = 0; i < 60; ++i) {
    wide.insert(wide.end(), tall.begin() + static_cast<ptrdiff_t>(i * 17),
                tall.begin() + static_cast<ptrdiff_t>(i * 17 + 17));
    wide.insert(wide.end(), 50, 0.0F);
  }
  const EmbeddingStatistics one = measure(tall, 17), same = measure(wide, 67), threads = measure(tall, 17, 3);
  EXPECT_GT(one.effective_rank, 15);
  EXPECT_LT(one.effective_rank, 17);
  EXPECT_NEAR(same.effective_rank, one.effective_rank, 1e-9);
  EXPECT_NEAR(one.alignment, 2, 0.3);
  EXPECT_NEAR(one.uniformity, -3.6, 0.3);  // of a uniform sphere of 17 dimensions
  EXPECT_EQ(threads.effective_rank, one.effective_rank);
  EXPECT_EQ(threads.uniformity, one.uniformity);
  EXPECT_EQ(threads.alignment, one.alignment);
}

}  // namespace
}  // namespace simclr
