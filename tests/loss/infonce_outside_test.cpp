// Truth from outside: the plain loops against numpy's losses and gradients in float64, and the loss of training on 1, 2
// and 4 ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/infonce/infonce_ref.h"
#include "tests/golden/golden_support.h"
#include "tests/kernels/infonce/infonce_support.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

// Both sum up to 62 negatives in double, one after the other here, pairwise in numpy.
TEST(InfoNceOutside, ReferenceMatchesTheStoredValues) {
  for (const auto& golden : test::golden_infonce()) {
    const InfoNceReference reference = infonce_reference(
        golden.z,
        {.batch = golden.batch, .columns = golden.columns, .temperature = golden.temperature, .margin = golden.margin});
    EXPECT_NEAR(reference.loss / golden.loss, 1, 1e-12);
    EXPECT_LE(test::relative_error(reference.grad_z, golden.grad_z), 1e-12);
  }
}

TEST(InfoNceOutside, LossMatchesTheStoredValues) {
  constexpr int64_t kShards = 4;
  for (const auto& golden : test::golden_infonce()) {
    const auto grad = test::by_shards(golden.grad_z, kShards, golden.columns);
    const double limit =
        test::tolerance(test::problem(golden.batch / kShards, kShards, golden.columns, golden.temperature));
    for (const auto& [name, algorithm] :
         {std::pair("einsum", LossAlgorithm::kEinsum), std::pair("streaming", LossAlgorithm::kStreaming)}) {
      for (const int ranks : {1, 2, 4}) {
        const test::LossRun run = test::run_loss(
            test::to_float(golden.z), {.batch = golden.batch, .columns = golden.columns, .shards = kShards},
            {.algorithm = algorithm, .temperature = golden.temperature, .margin = golden.margin}, {.ranks = ranks});
        const double loss_error = std::abs(run.losses[0] / golden.loss - 1);
        const double grad_error = test::relative_error(run.grad_z, grad);
        fmt::print("{:<9} B={:<3} C={:<4} tau={:<5} margin={:<4} {} ranks: loss {:.1e}, dL/dz {:.1e}, limit {:.1e}\n",
                   name, golden.batch, golden.columns, golden.temperature, golden.margin, ranks, loss_error, grad_error,
                   limit);
        EXPECT_LE(loss_error, limit);
        EXPECT_LE(grad_error, limit);
      }
    }
  }
}

}  // namespace
}  // namespace simclr
