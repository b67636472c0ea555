// The stored values of barlow_twins_stored.h against the plain loops, and against the product on 1, 2 and 4 ranks.
#include <gtest/gtest.h>

#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/loss/barlow_twins_stored.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

// z2 of the file is no float: what the product sees of it is off by up to 6e-8 of it, which moves the gradient by more.
TEST(BarlowTwinsOutside, MatchesTheStoredValues) {
  const auto cases = test::stored_barlow_twins();
  if (!cases) GTEST_SKIP() << "SIMCLR_SHARED is not set: no reference values";
  for (const auto& one : *cases) {
    const BarlowTwinsReference reference =
        barlow_twins_reference(one.z, {.batch = one.batch, .columns = one.columns, .lambda = one.lambda});
    EXPECT_NEAR(reference.loss / one.loss, 1, 1e-12);
    EXPECT_LE(test::relative_error(reference.grad_z, one.grad_z), 1e-10);

    const std::vector<float> z(one.z.begin(), one.z.end());
    for (const int ranks : {1, 2, 4}) {
      const test::LossRun run =
          test::run_loss(z, {.batch = one.batch, .columns = one.columns, .shards = 4},
                         {.type = LossType::kBarlowTwins, .lambda = one.lambda}, {.ranks = ranks});
      const double loss_error = std::abs(run.losses[0] / one.loss - 1);
      const double grad_error = test::relative_error(run.grad_z, test::reference_by_shards(one.grad_z, 4, one.columns));
      fmt::print("B={:<3} C={:<4} lambda={:<6} {} ranks: loss {:.1e}, dL/dz {:.1e}\n", one.batch, one.columns,
                 one.lambda, ranks, loss_error, grad_error);
      EXPECT_LE(loss_error, 1e-5);
      EXPECT_LE(grad_error, 1e-5);
    }
  }
}

}  // namespace
}  // namespace simclr
