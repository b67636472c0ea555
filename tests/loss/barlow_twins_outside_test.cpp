// Truth from outside: the plain loops against numpy's losses and gradients in float64, and the loss of training on 1, 2
// and 4 ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_support.h"
#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

TEST(BarlowTwinsOutside, ReferenceMatchesTheStoredValues) {
  for (const auto& golden : test::golden_barlow_twins()) {
    const BarlowTwinsReference reference = barlow_twins_reference(
        golden.z,
        {.batch = golden.batch, .columns = golden.columns, .lambda = golden.lambda, .scale = 1, .eps = golden.eps});
    EXPECT_NEAR(reference.loss / golden.loss, 1, 1e-12);
    EXPECT_LE(test::relative_error(reference.grad_z, golden.grad_z), 1e-12);
  }
}

TEST(BarlowTwinsOutside, LossMatchesTheStoredValues) {
  constexpr int64_t kShards = 4;
  for (const auto& golden : test::golden_barlow_twins()) {
    const auto grad = test::by_shards(golden.grad_z, kShards, golden.columns);
    for (const int ranks : {1, 2, 4}) {
      const test::LossRun run = test::run_loss(
          test::to_float(golden.z), {.batch = golden.batch, .columns = golden.columns, .shards = kShards},
          {.type = LossType::kBarlowTwins, .lambda = golden.lambda}, {.ranks = ranks});
      const double loss_error = std::abs(run.losses[0] / golden.loss - 1);
      const double grad_error = test::relative_error(run.grad_z, grad);
      fmt::print("B={:<3} C={:<4} lambda={:<6} {} ranks: loss {:.1e}, dL/dz {:.1e}\n", golden.batch, golden.columns,
                 golden.lambda, ranks, loss_error, grad_error);
      EXPECT_LE(loss_error, 1e-5);
      EXPECT_LE(grad_error, 1e-5);
    }
  }
}

}  // namespace
}  // namespace simclr
