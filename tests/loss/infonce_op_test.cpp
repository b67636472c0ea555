// The fast op against the plain loops in double from the same float embeddings: shapes, cuts into shards, threads,
// strides, extremes. The distributed part is in infonce_loss_test.cpp.
#include "kernels/infonce/infonce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kernels/infonce/infonce_ref.h"
#include "src/device/context.h"
#include "tests/loss/loss_testing.h"

namespace simclr {
namespace {

using testing::TestMatrix;

struct Result {
  std::vector<double> shard_loss, losses;
  std::vector<float> grad_anchors, grad_keys;
  bool padding_is_zero;
};

// Every output and the scratch start as NaN.
Result run(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride, int threads = 1) {
  Context context(threads);
  context.reserve(infonce_scratch(p));
  const auto& cpu = std::get<CpuExec>(context.exec());
  std::fill_n(reinterpret_cast<float*>(cpu.workspace), cpu.workspace_bytes / 4, testing::kNan);
  std::fill_n(reinterpret_cast<float*>(cpu.thread_scratch), cpu.thread_scratch_bytes / 4 * static_cast<size_t>(threads),
              testing::kNan);
  Buffer memory(infonce_saved_bytes(p));
  std::ranges::fill(memory.as<float>(), testing::kNan);
  const InfoNceSaved saved = infonce_saved(p, memory.as<std::byte>());
  TestMatrix e_all(e, p.keys(), p.columns, stride);
  TestMatrix grad_anchors(p.anchors(), p.columns, stride), grad_keys(p.keys(), p.columns, stride);
  std::vector<double> shard_loss(p.shards, NAN);
  infonce_forward(context.exec(), e_all.view(), p, saved, shard_loss);
  infonce_backward(context.exec(), e_all.view(), p, saved, grad_anchors.view(), grad_keys.view());
  return {shard_loss,
          {saved.losses, saved.losses + p.anchors()},
          grad_anchors.dense(),
          grad_keys.dense(),
          grad_anchors.padding_is_zero() && grad_keys.padding_is_zero()};
}

// Unit rows up to the rounding to float.
std::vector<float> normalized(std::vector<float> z, int64_t columns) {
  for (size_t i = 0; i < z.size(); i += columns) {
    double square = 0;
    for (int64_t c = 0; c < columns; ++c) square += static_cast<double>(z[i + c]) * z[i + c];
    for (int64_t c = 0; c < columns; ++c) z[i + c] = static_cast<float>(z[i + c] / std::sqrt(square));
  }
  return z;
}

// dL/de of all rows from a rank that owns all shards: anchor side plus key side.
std::vector<float> whole_gradient(const Result& r, const InfoNceProblem& p) {
  std::vector<float> grad = testing::by_shards(r.grad_keys, p.shards, p.columns);
  for (size_t k = 0; k < grad.size(); ++k) grad[k] += r.grad_anchors[k];
  return grad;
}

// A float similarity is off by about 3e-8 (rows have norm 1; worse rows are averaged out by 2B of them), which moves
// exp(s/tau) by 3e-8/tau relative, the loss and the gradient with it; 3e-7 covers the sums in float. With one column
// all terms of a product are equal but for two sizes, and roundings add up instead of averaging out: at most 6e-8 a
// term.
double tolerance(const InfoNceProblem& p) {
  return 3e-7 + 1e-7 / p.temperature + (p.columns == 1 ? 2e-8 * static_cast<double>(p.keys()) : 0);
}

// The length of the positives' part of the gradient, sqrt(sum_i (q_i / (2B tau))^2): what errors are measured by. The
// gradient itself is no measure where everything cancels (one column, collapsed rows: exactly 0); on realistic data it
// is as long, and infonce_accuracy_test.cpp measures by it.
double pull_of_positives(const InfoNceReference& reference, const InfoNceProblem& p) {
  double square = 0;
  for (const double loss : reference.losses) square += std::pow(-std::expm1(-loss), 2);  // q = 1 - exp(-loss)
  return std::sqrt(square) / (static_cast<double>(p.keys()) * p.temperature);
}

void expect_matches_reference(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  const Result r = run(e, p, stride);
  const InfoNceReference expected = infonce_reference_from_embeddings(
      testing::to_double(e),
      {.batch = p.batch, .columns = p.columns, .temperature = p.temperature, .margin = p.margin});
  const std::string what =
      fmt::format("B={} n={} C={} tau={} margin={}", p.batch, p.shard_images, p.columns, p.temperature, p.margin);
  double sum = 0;
  for (const double s : r.shard_loss) sum += s;
  const double loss = sum / static_cast<double>(p.keys());
  EXPECT_LE(std::abs(loss - expected.loss), tolerance(p) * expected.loss) << what;
  std::vector<double> by_shard;
  for (int64_t row = 0; row < p.anchors(); ++row) {
    const int64_t global = p.global_row(row / (2 * p.shard_images), row % (2 * p.shard_images));
    by_shard.insert(by_shard.end(), &expected.grad_e[global * p.columns],
                    &expected.grad_e[global * p.columns] + p.columns);
  }
  std::vector<double> error = testing::to_double(whole_gradient(r, p));
  for (size_t k = 0; k < error.size(); ++k) error[k] -= by_shard[k];
  // Below 1e-30 a float cannot hold the gradient: q reaches exp(-400).
  EXPECT_LE(testing::norm(error), tolerance(p) * pull_of_positives(expected, p) + 1e-30) << what;
  EXPECT_TRUE(r.padding_is_zero) << what;
}

InfoNceProblem problem(int64_t n, int64_t shards, int64_t columns, double temperature = 0.2, double margin = 0.0) {
  return {.batch = n * shards,
          .shard_images = n,
          .shards = shards,
          .first_shard = 0,
          .columns = columns,
          .temperature = temperature,
          .margin = margin};
}

TEST(InfoNceOp, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 16, 17, 128}) {
    for (const auto& [n, shards] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {1, 8}, {3, 4}, {7, 8}, {33, 1}, {129, 1}, {65, 2}}) {
      const auto e = normalized(testing::make_views(n * shards, columns, 0.5F, 1), columns);
      expect_matches_reference(e, problem(n, shards, columns), columns);
      expect_matches_reference(e, problem(n, shards, columns, 0.2, 0.3), round_up(columns, 16) + 16);
    }
  }
}

TEST(InfoNceOp, SurvivesExtremes) {
  for (const double temperature : {0.005, 0.05, 1.0, 100.0}) {
    for (const double margin : {0.0, 0.2, 1.0, 1.9}) {
      const InfoNceProblem p = problem(5, 2, 16, temperature, margin);
      expect_matches_reference(normalized(testing::make_views(10, 16, 0.2F, 2), 16), p, 16);
      expect_matches_reference(normalized(testing::make_views(10, 16, 0.0F, 3), 16), p, 16);   // identical views
      expect_matches_reference(normalized(testing::make_views(10, 16, 50.0F, 4), 16), p, 16);  // unrelated views
      auto opposite = normalized(testing::make_views(10, 16, 0.0F, 5), 16);
      for (size_t k = opposite.size() / 2; k < opposite.size(); ++k) opposite[k] = -opposite[k];
      expect_matches_reference(opposite, p, 16);
      expect_matches_reference(normalized(std::vector<float>(20 * 16, 1.0F), 16), p, 16);  // everything collapsed
      auto zeros = normalized(testing::make_views(10, 16, 0.2F, 6), 16);
      std::fill_n(zeros.begin(), 3 * 16, 0.0F);  // what rows of norm 0 and 1e-20 become
      expect_matches_reference(zeros, p, 16);
    }
  }
}

// Rank r of W owns S/W shards: each of its numbers has the bits that the rank which owns everything gets.
TEST(InfoNceOp, BitsDependNeitherOnThreadsNorOnTheShardsOwned) {
  constexpr int64_t kColumns = 19, kImages = 5, kShards = 8;
  const auto e = normalized(testing::make_views(kImages * kShards, kColumns, 0.3F, 7), kColumns);
  const Result whole = run(e, problem(kImages, kShards, kColumns), 32);
  const Result threaded = run(e, problem(kImages, kShards, kColumns), 32, 3);
  EXPECT_EQ(whole.losses, threaded.losses);
  EXPECT_EQ(whole.grad_anchors, threaded.grad_anchors);
  EXPECT_EQ(whole.grad_keys, threaded.grad_keys);
  std::vector<std::vector<float>> key_parts;
  for (int64_t shard = 0; shard < kShards; ++shard) {
    InfoNceProblem p = problem(kImages, kShards, kColumns);
    p.shards = 1;
    p.first_shard = shard;
    const Result one = run(e, p, 32);
    EXPECT_EQ(one.shard_loss[0], whole.shard_loss[shard]);
    const int64_t elements = p.anchors() * kColumns;
    EXPECT_EQ(one.grad_anchors, std::vector<float>(&whole.grad_anchors[shard * elements],
                                                   &whole.grad_anchors[shard * elements] + elements));
    key_parts.push_back(one.grad_keys);
  }
  const auto& k = key_parts;
  for (size_t i = 0; i < whole.grad_keys.size(); ++i) {
    ASSERT_EQ(whole.grad_keys[i],
              ((k[0][i] + k[1][i]) + (k[2][i] + k[3][i])) + ((k[4][i] + k[5][i]) + (k[6][i] + k[7][i])));
  }
}

TEST(InfoNceOp, RunsBackwardTwiceOnWhatForwardLeft) {
  const InfoNceProblem p = problem(4, 2, 8);
  Context context(1);
  context.reserve(infonce_scratch(p));
  Buffer memory(infonce_saved_bytes(p));
  const InfoNceSaved saved = infonce_saved(p, memory.as<std::byte>());
  TestMatrix e(normalized(testing::make_views(8, 8, 0.3F, 8), 8), 16, 8, 8), anchors(16, 8), keys(16, 8), again(16, 8);
  std::vector<double> shard_loss(2);
  infonce_forward(context.exec(), e.view(), p, saved, shard_loss);
  infonce_backward(context.exec(), e.view(), p, saved, anchors.view(), keys.view());
  infonce_backward(context.exec(), e.view(), p, saved, again.view(), keys.view());
  EXPECT_EQ(anchors.dense(), again.dense());
}

TEST(InfoNceOp, ShowsNonFiniteInput) {
  auto e = normalized(testing::make_views(4, 8, 0.3F, 9), 8);
  e[5] = testing::kNan;
  for (const double loss : run(e, problem(4, 1, 8), 8).losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(InfoNceOp, RefusesProblemsThatAreDefects) {
  const auto e = normalized(testing::make_views(8, 4, 0.3F, 10), 4);
  const auto broken = [&](auto&& change) {
    InfoNceProblem p = problem(4, 2, 4);
    change(p);
    run(e, p, p.columns);
  };
  EXPECT_NO_THROW(broken([](InfoNceProblem&) {}));
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.first_shard = 1; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.temperature = 0; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.temperature = NAN; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.margin = -0.1; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.margin = 2; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.batch = 1, p.shard_images = 1, p.shards = 1; }), Error);
  EXPECT_THROW(broken([](InfoNceProblem& p) { p.shards = 3, p.shard_images = 2; }), Error);
}

}  // namespace
}  // namespace simclr
