// The fast op against the plain loops in double from the same float embeddings: shapes, cuts into shards, threads,
// strides, extremes. The distributed part is in infonce_loss_test.cpp.
#include "kernels/infonce/infonce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "src/device/context.h"
#include "tests/kernels/infonce/infonce_support.h"

namespace simclr {
namespace {

using test::InfoNceOutputs;
using test::normalized;
using test::problem;
using test::TestMatrix;

// Every output and the scratch start as NaN.
InfoNceOutputs run(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride, int threads = 1) {
  Context context(threads);
  context.reserve(infonce_scratch(p));
  const auto& cpu = std::get<CpuExec>(context.exec());
  std::fill_n(reinterpret_cast<float*>(cpu.workspace), cpu.workspace_bytes / 4, test::kNan);
  std::fill_n(reinterpret_cast<float*>(cpu.thread_scratch), cpu.thread_scratch_bytes / 4 * static_cast<size_t>(threads),
              test::kNan);
  Buffer memory(infonce_saved_bytes(p));
  std::ranges::fill(memory.as<float>(), test::kNan);
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

void expect_matches_reference(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  test::expect_matches_reference(run(e, p, stride), e, p);
}

TEST(InfoNceOp, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 16, 17, 128}) {
    for (const auto& [n, shards] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {1, 8}, {3, 4}, {7, 8}, {33, 1}, {129, 1}, {65, 2}}) {
      const auto e = normalized(test::make_views(n * shards, columns, 0.5F, 1), columns);
      expect_matches_reference(e, problem(n, shards, columns), columns);
      expect_matches_reference(e, problem(n, shards, columns, 0.2, 0.3), round_up(columns, 16) + 16);
    }
  }
}

TEST(InfoNceOp, SurvivesExtremes) {
  for (const double temperature : {0.005, 0.05, 1.0, 100.0}) {
    for (const double margin : {0.0, 0.2, 1.0, 1.9}) {
      const InfoNceProblem p = problem(5, 2, 16, temperature, margin);
      for (const auto& e : test::extreme_rows()) expect_matches_reference(e, p, 16);
    }
  }
}

// Rank r of W owns S/W shards: each of its numbers has the bits that the rank which owns everything gets.
TEST(InfoNceOp, BitsDependNeitherOnThreadsNorOnTheShardsOwned) {
  constexpr int64_t kColumns = 19, kImages = 5, kShards = 8;
  const auto e = normalized(test::make_views(kImages * kShards, kColumns, 0.3F, 7), kColumns);
  const InfoNceOutputs whole = run(e, problem(kImages, kShards, kColumns), 32);
  const InfoNceOutputs threaded = run(e, problem(kImages, kShards, kColumns), 32, 3);
  EXPECT_EQ(whole.losses, threaded.losses);
  EXPECT_EQ(whole.grad_anchors, threaded.grad_anchors);
  EXPECT_EQ(whole.grad_keys, threaded.grad_keys);
  std::vector<std::vector<float>> key_parts;
  for (int64_t shard = 0; shard < kShards; ++shard) {
    InfoNceProblem p = problem(kImages, kShards, kColumns);
    p.shards = 1;
    p.first_shard = shard;
    const InfoNceOutputs one = run(e, p, 32);
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
  TestMatrix e(normalized(test::make_views(8, 8, 0.3F, 8), 8), 16, 8, 8), anchors(16, 8), keys(16, 8), again(16, 8);
  std::vector<double> shard_loss(2);
  infonce_forward(context.exec(), e.view(), p, saved, shard_loss);
  infonce_backward(context.exec(), e.view(), p, saved, anchors.view(), keys.view());
  infonce_backward(context.exec(), e.view(), p, saved, again.view(), keys.view());
  EXPECT_EQ(anchors.dense(), again.dense());
}

TEST(InfoNceOp, MeanLoss) {
  const double total = 3;
  double loss = NAN;
  infonce_mean_loss(CpuExec{}, &total, 8, &loss);
  EXPECT_EQ(loss, 0.375);
}

TEST(InfoNceOp, ShowsNonFiniteInput) {
  auto e = normalized(test::make_views(4, 8, 0.3F, 9), 8);
  e[5] = test::kNan;
  for (const double loss : run(e, problem(4, 1, 8), 8).losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(InfoNceOp, RefusesProblemsThatAreDefects) {
  const auto e = normalized(test::make_views(8, 4, 0.3F, 10), 4);
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
