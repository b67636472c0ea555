// loss.decoupled: the positive left out of the denominator, in both algorithms: numbers made by hand, finite
// differences, the plain loops in double, and the same bits on every number of ranks.
#include <gtest/gtest.h>

#include "kernels/infonce/infonce_ref.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

using test::LossRun;
using test::run_loss;

constexpr LossAlgorithm kAlgorithms[] = {LossAlgorithm::kEinsum, LossAlgorithm::kStreaming};

LossSettings decoupled(LossAlgorithm algorithm, double temperature) {
  return {.algorithm = algorithm, .temperature = temperature, .margin = 0, .decoupled = true};
}

// Two images at right angles, both views equal, tau = 1: log(1 + 1) - 1 for every anchor. The loss turns rows towards
// what is at a right angle to them: 1/4 [ 2 negatives * (1/2 + 1/2) (0, 1) - 2 (1, 0) ], of which (0, 1) is left after
// the way back through normalization.
TEST(Decoupled, HandNumbers) {
  const std::vector<float> z = {1, 0, 0, 1, 1, 0, 0, 1};
  for (const LossAlgorithm algorithm : kAlgorithms) {
    const LossRun run = run_loss(z, {.batch = 2, .columns = 2, .shards = 1}, decoupled(algorithm, 1.0), {});
    EXPECT_NEAR(run.losses[0], std::log(2.0) - 1, 1e-7);
    const float expected[8] = {0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0};
    for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(run.grad_z[k], expected[k], 1e-7) << k;
  }
}

// The reference itself: its gradient is the slope of its loss.
TEST(Decoupled, ReferenceAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const double temperature : {0.5, 0.1}) {
    std::vector<double> z = test::to_double(test::make_views(5, 4, 0.5F, 3));
    const InfoNceReferenceSettings settings{
        .batch = 5, .columns = 4, .temperature = temperature, .margin = 0, .decoupled = true};
    const std::vector<double> grad = infonce_reference(z, settings).grad_z;
    std::vector<double> slopes;
    for (double& x : z) {
      const double middle = x;
      x = middle + kStep;
      const double above = infonce_reference(z, settings).loss;
      x = middle - kStep;
      const double below = infonce_reference(z, settings).loss;
      x = middle;
      slopes.push_back((above - below) / (2 * kStep));
    }
    EXPECT_LE(test::relative_error(grad, slopes), 1e-7);
  }
}

TEST(Decoupled, MatchesTheReferenceAndHasTheSameBitsOnEveryNumberOfRanks) {
  constexpr int64_t kBatch = 40, kColumns = 24;
  const LossShape shape{.batch = kBatch, .columns = kColumns, .shards = 8};
  for (const float noise : {0.2F, 1.0F}) {
    const std::vector<float> z = test::make_views(kBatch, kColumns, noise, 4);
    for (const double temperature : {0.01, 0.1, 0.5, 10.0}) {
      const InfoNceReference expected = infonce_reference(
          test::to_double(z),
          {.batch = kBatch, .columns = kColumns, .temperature = temperature, .margin = 0, .decoupled = true});
      const std::vector<double> grad = test::by_shards(expected.grad_z, shape.shards, kColumns);
      for (const LossAlgorithm algorithm : kAlgorithms) {
        const LossRun one = run_loss(z, shape, decoupled(algorithm, temperature), {.ranks = 1});
        EXPECT_NEAR(one.losses[0], expected.loss, 1e-6 * std::abs(expected.loss));
        EXPECT_LE(test::relative_error(one.grad_z, grad), 5e-7 + 1e-7 / temperature) << temperature;
        for (const int ranks : {2, 4, 8}) {
          const LossRun run = run_loss(z, shape, decoupled(algorithm, temperature), {.ranks = ranks, .threads = 2});
          EXPECT_EQ(run.losses, std::vector<double>(ranks, one.losses[0]));
          EXPECT_EQ(run.grad_z, one.grad_z);
        }
      }
    }
  }
}

TEST(Decoupled, RefusesAMargin) {
  for (const LossAlgorithm algorithm : kAlgorithms) {
    LossSettings settings = decoupled(algorithm, 0.5);
    settings.margin = 0.1;
    run_ranks(1, [&](Collectives& collectives) {
      Context context(1);
      EXPECT_THROW(make_loss(context, collectives, settings, {.batch = 4, .columns = 2, .shards = 1}), Error);
    });
  }
}

}  // namespace
}  // namespace simclr
