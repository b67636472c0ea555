// The streaming op against numbers made by hand and against the plain loops in double from the same float embeddings:
// shapes, cuts into shards, threads, strides, extremes, instruction sets.
#include <gtest/gtest.h>

#include <numbers>
#include <utility>

#include "kernels/infonce_streaming/streaming_plan.h"
#include "tests/kernels/infonce_streaming/infonce_streaming_support.h"

namespace simclr {
namespace {

using test::normalized;
using test::problem;
using test::run_streaming;
using test::StreamingOutputs;

// A fixed shift rounds exponents as large as 2 / tau, where einsum has those below the row's maximum.
constexpr double kSlack = 2;

void expect_matches_reference(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  test::expect_matches_reference(run_streaming(e, p, stride).as_einsum(p), e, p, kSlack);
}

// Two images at right angles, both views equal, tau = 1: N = 1 + 1, exp(l_ip) = e for every anchor.
TEST(StreamingOp, HandNumbers) {
  const InfoNceProblem p = problem(2, 1, 2, 1.0);
  const StreamingOutputs r = run_streaming({1, 0, 0, 1, 1, 0, 0, 1}, p, 2);
  const double e = std::numbers::e, side = 1 / (2 + e);
  for (const double loss : r.losses) EXPECT_NEAR(loss, std::log(1 + 2 / e), 1e-7);
  for (const double d : r.log_denominators) EXPECT_NEAR(d, std::log(2 + e), 1e-7);
  EXPECT_NEAR(r.shard_loss[0], 4 * std::log(1 + 2 / e), 4e-7);
  // 1/4 [ 2 negatives * (p + p) (0, 1) - 2 q (1, 0) ], p = 1/(2 + e), q = 2 p
  const float expected[8] = {-1, 1, 1, -1, -1, 1, 1, -1};
  for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(r.grad_e[k], expected[k] * side, 1e-7) << k;
}

// All logits are equal: every anchor guesses among 2B - 1 rows, and nothing pulls.
TEST(StreamingOp, IdenticalEmbeddingsGiveTheLogOfTheirCount) {
  for (const int64_t batch : {2, 63, 200}) {
    for (const double temperature : {0.005, 0.1, 100.0}) {
      std::vector<float> e(2 * batch * 4);
      for (size_t k = 0; k < e.size(); k += 4) e[k] = 1;
      const StreamingOutputs r = run_streaming(e, problem(batch, 1, 4, temperature), 4);
      const double expected = std::log(static_cast<double>(2 * batch - 1));
      for (const double loss : r.losses) ASSERT_NEAR(loss / expected, 1, 1e-7) << batch << " " << temperature;
      for (const float g : r.grad_e) ASSERT_NEAR(g * temperature, 0, 1e-7);
    }
  }
}

TEST(StreamingOp, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 17, 32, 128, 512}) {
    for (const auto& [n, shards] : std::vector<std::pair<int64_t, int64_t>>{
             {2, 1}, {1, 2}, {1, 8}, {7, 8}, {33, 1}, {65, 2}, {64, 2}, {193, 1}}) {
      const auto e = normalized(test::make_views(n * shards, columns, 0.5F, 1), columns);
      expect_matches_reference(e, problem(n, shards, columns), columns);
      expect_matches_reference(e, problem(n, shards, columns, 0.2, 0.3), round_up(columns, 16) + 16);
      expect_matches_reference(e, problem(n, shards, columns, 0.013, 0.3), columns);  // a maximum for each row
    }
  }
}

TEST(StreamingOp, SurvivesExtremes) {
  for (const double temperature : {0.005, 0.0232, 0.0233, 0.05, 1.0, 100.0}) {  // the shift is fixed from 0.02326 on
    for (const double margin : {0.0, 0.2, 1.0, 1.999}) {
      const InfoNceProblem p = problem(5, 2, 16, temperature, margin);
      for (const auto& e : test::extreme_rows()) expect_matches_reference(e, p, 16);
    }
  }
}

// Every way to cut 40 to 560 images into 8 shards' owners, with tiles that belong to one rank, to two, to both views.
TEST(StreamingOp, BitsDependNeitherOnThreadsNorOnTheShardsOwned) {
  for (const double temperature : {0.1, 0.01}) {
    for (const int64_t images : {5, 32, 70}) {
      constexpr int64_t kColumns = 19, kShards = 8;
      const auto e = normalized(test::make_views(images * kShards, kColumns, 0.3F, 7), kColumns);
      const StreamingOutputs whole = run_streaming(e, problem(images, kShards, kColumns, temperature), 32);
      const StreamingOutputs threaded = run_streaming(e, problem(images, kShards, kColumns, temperature), 32, 3);
      EXPECT_EQ(whole.losses, threaded.losses);
      EXPECT_EQ(whole.grad_e, threaded.grad_e);
      for (const int64_t owned : {1, 2, 4}) {
        for (int64_t first = 0; first < kShards; first += owned) {
          InfoNceProblem p = problem(images, kShards, kColumns, temperature);
          p.shards = owned;
          p.first_shard = first;
          const StreamingOutputs part = run_streaming(e, p, 32, 2, whole.log_denominators);
          const int64_t rows = 2 * images * first;
          EXPECT_EQ(part.losses, std::vector<double>(&whole.losses[rows], &whole.losses[rows] + p.anchors()));
          EXPECT_EQ(part.log_denominators,
                    std::vector<double>(&whole.log_denominators[rows], &whole.log_denominators[rows] + p.anchors()));
          EXPECT_EQ(part.grad_e, std::vector<float>(&whole.grad_e[rows * kColumns],
                                                    &whole.grad_e[rows * kColumns] + p.anchors() * kColumns));
        }
      }
    }
  }
}

// 64 tiles, which go in groups of 4 on one thread and singly on nine.
TEST(StreamingOp, GroupsOfTilesChangeNoBit) {
  constexpr int64_t kColumns = 8, kImages = 510, kShards = 8;
  const auto e = normalized(test::make_views(kImages * kShards, kColumns, 0.3F, 8), kColumns);
  const StreamingOutputs whole = run_streaming(e, problem(kImages, kShards, kColumns), kColumns);
  const StreamingOutputs threaded = run_streaming(e, problem(kImages, kShards, kColumns), kColumns, 9);
  EXPECT_EQ(whole.losses, threaded.losses);
  EXPECT_EQ(whole.grad_e, threaded.grad_e);
  InfoNceProblem p = problem(kImages, kShards, kColumns);
  p.shards = 4;
  p.first_shard = 4;
  const StreamingOutputs part = run_streaming(e, p, kColumns, 2, whole.log_denominators);
  const size_t half = whole.losses.size() / 2;
  EXPECT_EQ(part.losses, std::vector<double>(whole.losses.begin() + half, whole.losses.end()));
  EXPECT_EQ(part.grad_e, std::vector<float>(whole.grad_e.begin() + half * kColumns, whole.grad_e.end()));
}

// A tile and its transpose: the sums of rows of one are those of columns of the other, to the bit, in every version.
TEST(StreamingOp, ATileReadAsItsTransposeGivesTheSameBits) {
  constexpr int64_t kColumns = 37, kStride = 64, kTile = detail::kTile;
  const auto numbers = normalized(test::random_numbers(2 * kTile * kColumns, 3), kColumns);
  std::vector<float> e(2 * kTile * kStride), panels(2 * kTile * kColumns);
  for (int64_t i = 0; i < 2 * kTile; ++i) {
    for (int64_t c = 0; c < kColumns; ++c) {
      e[i * kStride + c] = numbers[i * kColumns + c];
      panels[(i / detail::kPanel * kColumns + c) * detail::kPanel + i % detail::kPanel] = numbers[i * kColumns + c];
    }
  }
  const auto tile = [&](int64_t row_tile, int64_t column_tile) {
    return detail::StreamingTile{.rows = &e[row_tile * kTile * kStride],
                                 .panels = &panels[column_tile * kTile * kColumns],
                                 .stride = kStride,
                                 .depth = kColumns,
                                 .first_row = row_tile * kTile,
                                 .first_column = column_tile * kTile,
                                 .batch = 100,  // 2B = 200: positives and 56 rows beyond the end lie within
                                 .scale = 5,
                                 .scale_low = 0};
  };
  std::vector<float> first;
  ASSERT_GE(detail::tile_kernels().size(), 1U);
  for (const detail::TileKernels& kernels : detail::tile_kernels()) {
    std::vector<float> rows(kTile), columns(kTile), rows_of_other(kTile), columns_of_other(kTile);
    kernels.sum_exponentials(tile(0, 1), rows.data(), columns.data());
    kernels.sum_exponentials(tile(1, 0), rows_of_other.data(), columns_of_other.data());
    EXPECT_EQ(rows, columns_of_other) << kernels.name;
    EXPECT_EQ(columns, rows_of_other) << kernels.name;

    std::vector<float> w(kTile * kTile), w_of_other(kTile * kTile), sums(kTile * kStride),
        sums_of_other(kTile * kStride);
    kernels.weights(tile(0, 1), rows.data(), columns.data(), w.data());
    kernels.weights(tile(1, 0), columns.data(), rows.data(), w_of_other.data());
    kernels.accumulate(w.data(), false, &e[kTile * kStride], kStride, 0, kTile, sums.data());
    kernels.accumulate(w_of_other.data(), true, &e[kTile * kStride], kStride, 0, kTile, sums_of_other.data());
    EXPECT_EQ(sums, sums_of_other) << kernels.name;
    EXPECT_GT(test::norm(test::to_double(sums)), 1);
    if (first.empty()) first = sums;
    EXPECT_LE(test::relative_error(sums, test::to_double(first)), 1e-6) << kernels.name;
  }
}

TEST(StreamingOp, ShowsNonFiniteInput) {
  auto e = normalized(test::make_views(4, 8, 0.3F, 9), 8);
  e[5] = test::kNan;
  for (const double temperature : {0.5, 0.01}) {
    for (const double loss : run_streaming(e, problem(4, 1, 8, temperature), 8).losses) EXPECT_TRUE(std::isnan(loss));
  }
  // The last row is all that row 63 sees of the last tile: its positive is the other one there.
  auto last = normalized(test::make_views(65, 8, 0.3F, 9), 8);
  last.back() = test::kNan;
  for (const double temperature : {0.5, 0.01}) {
    for (const double loss : run_streaming(last, problem(65, 1, 8, temperature), 8).losses)
      EXPECT_TRUE(std::isnan(loss));
  }
}

TEST(StreamingOp, RefusesProblemsThatAreDefects) {
  const auto e = normalized(test::make_views(8, 4, 0.3F, 10), 4);
  const auto broken = [&](auto&& change) {
    InfoNceProblem p = problem(4, 2, 4);
    change(p);
    run_streaming(e, p, p.columns);
  };
  EXPECT_NO_THROW(broken([](InfoNceProblem&) {}));
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.first_shard = 1; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.temperature = 0; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.margin = 2; }), Error);
  EXPECT_THROW(run_streaming(e, problem(4, 2, 4), 4, 1, {1.0, 2.0}), Error);  // log-denominators of two rows
}

}  // namespace
}  // namespace simclr
