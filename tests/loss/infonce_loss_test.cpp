// The distributed loss: the same bits on 1, 2, 4 and 8 ranks, the reference's numbers, and the contract of its
// interface.
#include <gtest/gtest.h>

#include "kernels/infonce/infonce_ref.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

const LossSettings kEinsum{.algorithm = LossAlgorithm::kEinsum}, kStreaming{.algorithm = LossAlgorithm::kStreaming};

using test::LossRun;
using test::run_loss;
using test::TestMatrix;

TEST(InfoNceLoss, HasTheSameBitsOnEveryNumberOfRanks) {
  for (const auto& [images, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {5, 16}, {8, 17}, {32, 128}}) {
    const LossShape shape{.batch = 8 * images, .columns = columns, .shards = 8};
    const LossSettings settings{.algorithm = LossAlgorithm::kEinsum, .temperature = 0.1, .margin = 0.1};
    const std::vector<float> z = test::make_views(shape.batch, columns, 0.3F, 1);
    const LossRun one = run_loss(z, shape, settings, {.ranks = 1});
    const InfoNceReference expected = infonce_reference(
        test::to_double(z), {.batch = shape.batch, .columns = columns, .temperature = 0.1, .margin = 0.1});
    EXPECT_LE(std::abs(one.losses[0] / expected.loss - 1), 1e-6);
    EXPECT_LE(test::relative_error(one.grad_z, test::by_shards(expected.grad_z, shape.shards, shape.columns)), 3e-6);
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int threads : {1, 2}) {
        const LossRun run = run_loss(z, shape, settings, {.ranks = ranks, .threads = threads, .padding = 7});
        EXPECT_EQ(run.losses, std::vector<double>(ranks, one.losses[0])) << ranks << " ranks";
        EXPECT_EQ(run.grad_z, one.grad_z) << ranks << " ranks, " << threads << " threads";
        EXPECT_TRUE(run.padding_is_zero);
      }
    }
  }
}

// Another order of eight doubles often gives the same bits by luck, so this asks often.
TEST(InfoNceLoss, SumsShardLossesInTreeOrder) {
  const LossShape shape{.batch = 16, .columns = 4, .shards = 8};
  for (uint32_t seed = 100; seed < 120; ++seed) {
    const std::vector<float> z = test::make_views(16, 4, 1.0F, seed);
    EXPECT_EQ(run_loss(z, shape, kEinsum, {.ranks = 1}).losses[0], run_loss(z, shape, kEinsum, {.ranks = 8}).losses[0])
        << seed;
  }
}

TEST(InfoNceLoss, AnyShardCountThatRanksDivideGivesTheSameNumbers) {
  // One shard per rank is what `reduction: fastest` runs; equal up to rounding only.
  const std::vector<float> z = test::make_views(8, 12, 0.3F, 2);
  const LossSettings settings{.algorithm = LossAlgorithm::kEinsum, .temperature = 0.2};
  const InfoNceReference expected =
      infonce_reference(test::to_double(z), {.batch = 8, .columns = 12, .temperature = 0.2, .margin = 0});
  for (const int64_t shards : {1, 2, 4, 8}) {
    const LossShape shape{.batch = 8, .columns = 12, .shards = shards};
    for (int ranks = 1; ranks <= shards; ranks *= 2) {
      const LossRun run = run_loss(z, shape, settings, {.ranks = ranks});
      EXPECT_LE(std::abs(run.losses[0] / expected.loss - 1), 1e-6);
      EXPECT_LE(test::relative_error(run.grad_z, test::by_shards(expected.grad_z, shape.shards, shape.columns)), 1e-6);
    }
  }
}

TEST(InfoNceLoss, TakesRowsOfAnyLength) {
  constexpr int64_t kColumns = 6;
  const LossShape shape{.batch = 8, .columns = kColumns, .shards = 4};
  std::vector<float> z = test::make_views(8, kColumns, 0.3F, 3);
  const std::vector<float> plain = z;
  const float factor[4] = {1e20F, 1e-20F, 0.0F, 1e-9F};
  for (int row = 0; row < 4; ++row) {
    for (int64_t c = 0; c < kColumns; ++c) z[row * kColumns + c] *= factor[row];
  }
  const LossRun run = run_loss(z, shape, {.algorithm = LossAlgorithm::kEinsum, .temperature = 0.1}, {.ranks = 2});
  const InfoNceReference expected =
      infonce_reference(test::to_double(z), {.batch = 8, .columns = kColumns, .temperature = 0.1, .margin = 0});
  const std::vector<double> grad = test::by_shards(expected.grad_z, shape.shards, shape.columns);
  EXPECT_LE(std::abs(run.losses[0] / expected.loss - 1), 1e-6);
  for (int64_t row = 0; row < 16; ++row) {  // row by row: their lengths span forty orders of magnitude
    const std::vector<float> actual(&run.grad_z[row * kColumns], &run.grad_z[row * kColumns] + kColumns);
    const std::vector<double> wanted(&grad[row * kColumns], &grad[row * kColumns] + kColumns);
    if (test::norm(wanted) == 0) {
      EXPECT_EQ(actual, std::vector<float>(kColumns, 0.0F)) << row;
    } else {
      EXPECT_LE(test::relative_error(actual, wanted), 1e-5) << row;
    }
  }
}

TEST(InfoNceLoss, RunsStepAfterStepOnOnesMemory) {
  const LossShape shape{.batch = 16, .columns = 8, .shards = 4};
  const LossSettings settings{.algorithm = LossAlgorithm::kEinsum, .temperature = 0.2};
  const auto first = test::make_views(16, 8, 0.3F, 4), second = test::make_views(16, 8, 0.3F, 5);
  const LossRun expected = run_loss(second, shape, settings, {});
  run_ranks(1, [&](Collectives& collectives) {
    Context context(1);
    const auto loss = make_loss(context, collectives, settings, shape);
    const size_t before = context.allocated_bytes();
    TestMatrix grad_z(32, 8);
    for (const auto& z : {first, second}) {
      TestMatrix z_in(test::by_shards(z, 4, 8), 32, 8, 8);
      const double value = *loss->forward(z_in.view());
      loss->backward(grad_z.view());
      EXPECT_EQ(value == expected.losses[0], z == second);
    }
    EXPECT_EQ(grad_z.dense(), expected.grad_z);
    EXPECT_EQ(context.allocated_bytes(), before);         // no memory is taken within a step
    const auto& cpu = std::get<CpuExec>(context.exec());  // one thread
    EXPECT_EQ(loss->memory_bytes() + cpu.workspace_bytes + cpu.thread_scratch_bytes, before);
  });
}

TEST(InfoNceLoss, ShowsNonFiniteInputOnEveryRank) {
  std::vector<float> z = test::make_views(8, 4, 0.3F, 6);
  z[4 * 3] = test::kNan;
  const LossRun run = run_loss(z, {.batch = 8, .columns = 4, .shards = 4}, kEinsum, {.ranks = 4});
  for (const double loss : run.losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(InfoNceLoss, SaysWhatAnAnchorSees) {
  run_ranks(4, [](Collectives& collectives) {
    Context context(1);
    EXPECT_EQ(make_loss(context, collectives, kStreaming, {.batch = 512, .columns = 16, .shards = 8})->describe(),
              "B=512 images, 2 views, 4 ranks x 128: 1 positive and 1022 negatives per anchor");
  });
}

TEST(InfoNceLoss, RefusesCallsThatAreDefects) {
  run_ranks(2, [](Collectives& collectives) {
    Context context(1);
    EXPECT_THROW(make_loss(context, collectives, kStreaming, {.batch = 8, .columns = 4, .shards = 1}), Error);
    EXPECT_THROW(make_loss(context, collectives, kStreaming, {.batch = 9, .columns = 4, .shards = 2}), Error);
    const auto loss = make_loss(context, collectives, kStreaming, {.batch = 8, .columns = 4, .shards = 2});
    TestMatrix wrong_rows(16, 4), wrong_columns(8, 5), right(8, 4);
    EXPECT_THROW(loss->forward(wrong_rows.view()), Error);
    EXPECT_THROW(loss->forward(wrong_columns.view()), Error);
    EXPECT_THROW(loss->backward(right.view()), Error);  // no forward() before it
    TestMatrix z(test::random_numbers(8 * 4, 1), 8, 4, 4);
    loss->forward(z.view());
    loss->backward(right.view());
    EXPECT_THROW(loss->backward(right.view()), Error);  // one forward() is for one backward()
  });
}

}  // namespace
}  // namespace simclr
