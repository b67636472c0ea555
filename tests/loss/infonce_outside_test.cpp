// Truth from outside: losses and gradients in double that another program (numpy) made, on 1, 2 and 4 ranks.
// Needs the folder of reference values: SIMCLR_SHARED=FOLDER, the file is FOLDER/reference/infonce.json.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/infonce/infonce_ref.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

std::vector<double> rows_of(const nlohmann::json& first, const nlohmann::json& second) {
  std::vector<double> out;
  for (const auto* view : {&first, &second}) {
    for (const auto& row : *view) {
      for (const auto& x : row) out.push_back(x.get<double>());
    }
  }
  return out;
}

// One stored case (B = 32, tau = 0.01) has a loss of 1.7e-19. Its file says 0, and its gradient is rounding noise: with
// the positive inside the sum, double keeps nothing of 1 - p there. These two numbers come from 60 decimal digits
// instead.
constexpr double kTinyLoss = 1.7217040236981735e-19, kTinyGradientNorm = 3.0312576477499484e-18;

const std::pair<LossAlgorithm, int> kRuns[] = {{LossAlgorithm::kEinsum, 1},    {LossAlgorithm::kEinsum, 2},
                                               {LossAlgorithm::kEinsum, 4},    {LossAlgorithm::kStreaming, 1},
                                               {LossAlgorithm::kStreaming, 2}, {LossAlgorithm::kStreaming, 4}};

TEST(InfoNceOutside, MatchesTheStoredValues) {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "SIMCLR_SHARED is not set: no reference values";
  std::ifstream file(std::string(shared) + "/reference/infonce.json");
  ASSERT_TRUE(file) << "cannot read reference/infonce.json under SIMCLR_SHARED";
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 6U);
  for (const auto& one : cases) {
    const int64_t batch = one["n"], columns = one["c"];
    const double temperature = one["temperature"], margin = one["margin"], expected_loss = one["loss"];
    const std::vector<double> z64 = rows_of(one["z1"], one["z2"]), grad = rows_of(one["grad_z1"], one["grad_z2"]);
    const std::vector<float> z(z64.begin(), z64.end());
    ASSERT_EQ(test::to_double(z), z64) << "stored inputs are floats";

    const InfoNceReference reference =
        infonce_reference(z64, {.batch = batch, .columns = columns, .temperature = temperature, .margin = margin});
    if (expected_loss == 0) {
      ASSERT_EQ(batch, 32);
      EXPECT_NEAR(reference.loss / kTinyLoss, 1, 1e-12);
      EXPECT_NEAR(test::norm(reference.grad_z) / kTinyGradientNorm, 1, 1e-12);
      for (const LossAlgorithm algorithm : {LossAlgorithm::kEinsum, LossAlgorithm::kStreaming}) {
        const test::LossRun run =
            test::run_loss(z, {.batch = batch, .columns = columns, .shards = 4},
                           {.algorithm = algorithm, .temperature = temperature, .margin = margin}, {.ranks = 4});
        EXPECT_NEAR(run.losses[0] / kTinyLoss, 1, 1e-5);
        EXPECT_NEAR(test::norm(test::to_double(run.grad_z)) / kTinyGradientNorm, 1, 1e-5);
      }
      continue;
    }
    EXPECT_NEAR(reference.loss / expected_loss, 1, 1e-12);
    EXPECT_LE(test::relative_error(reference.grad_z, grad), 1e-9);

    for (const auto& [algorithm, ranks] : kRuns) {
      ASSERT_EQ(batch % ranks, 0);
      const LossShape shape{.batch = batch, .columns = columns, .shards = 4};
      const test::LossRun run = test::run_loss(
          z, shape, {.algorithm = algorithm, .temperature = temperature, .margin = margin}, {.ranks = ranks});
      std::vector<double> grad_by_shards;
      const int64_t n = shape.shard_images();
      for (int64_t part = 0; part < 2 * shape.shards; ++part) {  // (shard, view)
        const double* from = &grad[(part % 2 * batch + part / 2 * n) * columns];
        grad_by_shards.insert(grad_by_shards.end(), from, from + n * columns);
      }
      const double loss_error = std::abs(run.losses[0] / expected_loss - 1);
      const double grad_error = test::relative_error(run.grad_z, grad_by_shards);
      fmt::print("{:<9} B={:<3} C={:<4} tau={:<5} margin={:<4} {} ranks: loss {:.1e}, dL/dz {:.1e}\n",
                 algorithm == LossAlgorithm::kEinsum ? "einsum" : "streaming", batch, columns, temperature, margin,
                 ranks, loss_error, grad_error);
      EXPECT_LE(loss_error, 1e-5);
      EXPECT_LE(grad_error, 1e-5);
    }
  }
}

}  // namespace
}  // namespace simclr
