// Geometry by hand, known spectra, and independence of the number of threads.
#include "src/evaluate/embedding_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/common/philox.h"

namespace simclr {
namespace {

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
