// fp32 compared with fp64, and both with values from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/check_loss/check_loss_support.h"
#include "tests/checkpoint/checkpoint_support.h"
#include "tests/data/npy_support.h"
#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::relative_error;
using test::run_parts;
using test::view_pair;
using testing::HasSubstr;

std::vector<double> rows_of(const nlohmann::json& first, const nlohmann::json& second) {
  std::vector<double> out;
  for (const auto* view : {&first, &second}) {
    for (const auto& row : *view) {
      for (const auto& x : row) out.push_back(x.get<double>());
    }
  }
  return out;
}

// One stored case (B = 32, tau = 0.01) has a loss of 1.7e-19, which double loses when the positive is inside the sum:
// its file says 0. These come from 60 decimal digits.
constexpr double kTinyLoss = 1.7217040236981735e-19, kTinyGradientNorm = 3.0312576477499484e-18;

TEST(CheckLossOutside, MatchesTheStoredValues) {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "SIMCLR_SHARED is not set: no reference values";
  std::ifstream file(std::string(shared) + "/reference/infonce.json");
  ASSERT_TRUE(file) << "cannot read reference/infonce.json under SIMCLR_SHARED";
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 6U);
  for (const auto& one : cases) {
    const int64_t columns = one["c"];
    const LossSettings settings{.temperature = one["temperature"], .margin = one["margin"]};
    const double expected_loss = one["loss"];
    const std::vector<double> z = rows_of(one["z1"], one["z2"]), grad = rows_of(one["grad_z1"], one["grad_z2"]);
    const auto fp64 = run_parts<ExactInfoNce>(view_pair(z, columns), settings, 3);
    const auto fp32 =
        run_parts<TrainingInfoNce>(view_pair(std::vector<float>(z.begin(), z.end()), columns), settings, 3);
    if (expected_loss == 0) {
      EXPECT_NEAR(fp64.loss() / kTinyLoss, 1, 1e-12);
      EXPECT_NEAR(test::norm(fp64.grad_z) / kTinyGradientNorm, 1, 1e-12);
      EXPECT_NEAR(fp32.loss() / kTinyLoss, 1, 1e-5);
      EXPECT_NEAR(test::norm(test::to_double(fp32.grad_z)) / kTinyGradientNorm, 1, 1e-5);
      continue;
    }
    fmt::print("N={} C={} tau={} margin={}: fp64 loss {:.1e}, dL/dz {:.1e}; fp32 {:.1e}, {:.1e}\n", one["n"].get<int>(),
               columns, settings.temperature, settings.margin, std::abs(fp64.loss() / expected_loss - 1),
               relative_error(fp64.grad_z, grad), std::abs(fp32.loss() / expected_loss - 1),
               relative_error(fp32.grad_z, grad));
    EXPECT_NEAR(fp64.loss() / expected_loss, 1, 1e-12);
    EXPECT_LE(relative_error(fp64.grad_z, grad), 1e-9);  // what the stored ones are worth: 1 - p cancels in them
    EXPECT_NEAR(fp32.loss() / expected_loss, 1, std::max(1e-6, 5e-8 / settings.temperature));
    EXPECT_LE(relative_error(fp32.grad_z, grad), std::max(1e-6, 5e-8 / settings.temperature));
  }
}

// The same inputs, floats: the two precisions share no arithmetic.
TEST(CheckLoss, PrecisionsAgree) {
  for (const auto& [images, columns] : std::vector<std::pair<int64_t, int64_t>>{{2, 4}, {67, 24}, {200, 128}}) {
    for (const auto& settings : std::vector<LossSettings>{
             {.temperature = 0.5}, {.temperature = 0.1, .margin = 0.2}, {.temperature = 0.2, .decoupled = true}}) {
      const std::vector<float> z = test::make_views(images, columns, 0.8F, 31);
      const auto fp32 = run_parts<TrainingInfoNce>(view_pair(z, columns), settings);
      const auto fp64 = run_parts<ExactInfoNce>(view_pair(z, columns), settings);
      EXPECT_NEAR(fp32.loss(), fp64.loss(), 1e-6 * std::max(1.0, std::abs(fp64.loss())));
      EXPECT_LE(relative_error(fp32.grad_z, fp64.grad_z), 1e-6) << images << " " << settings.temperature;
    }
  }
}

TEST(CheckLoss, Fp32HasTheSameBitsForEveryCut) {
  const ViewPair views = view_pair(test::make_views(301, 24, 0.8F, 32), 24);
  for (const double temperature : {0.2, 0.01}) {  // a fixed shift, and a maximum for each row
    const LossSettings settings{.temperature = temperature};
    const auto one = run_parts<TrainingInfoNce>(views, settings);
    for (const auto& [ranks, threads] : std::vector<std::pair<int, int>>{{1, 2}, {2, 1}, {3, 1}, {7, 2}, {302, 1}}) {
      const auto run = run_parts<TrainingInfoNce>(views, settings, ranks, threads);
      EXPECT_EQ(run.losses, one.losses) << ranks << " ranks, " << threads << " threads";
      EXPECT_EQ(run.grad_z, one.grad_z) << ranks << " ranks, " << threads << " threads";
    }
  }
}

TEST(CheckLoss, Fp32RefusesWhatNoFloatHolds) {
  std::vector<double> z = {1, 2, 3, 4, 5, 1e39, 7, 8};
  const std::string text =
      error_text([&] { run_parts<TrainingInfoNce>(view_pair(z, 2), {.temperature = 0.5}); }, ExitCode::kData);
  EXPECT_THAT(text, HasSubstr("row 0, column 1 (both from 0) of z2.npy is 1e+39"));
  EXPECT_THAT(text, HasSubstr("--precision fp64"));
}

}  // namespace
}  // namespace simclr
