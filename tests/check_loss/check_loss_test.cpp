// fp32 compared with fp64, and both with values from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/check_loss/check_loss_support.h"
#include "tests/checkpoint/checkpoint_support.h"
#include "tests/data/npy_support.h"
#include "tests/golden/golden_support.h"
#include "tests/kernels/infonce/infonce_support.h"
#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::relative_error;
using test::run_parts;
using test::view_pair;
using testing::HasSubstr;

// The stored rows are floats, so what fp32 is off by is its arithmetic: that of the losses of training, and judged as
// theirs is. Above 0.05 the similarities' error, divided by the temperature, is small enough for 1e-6.
double fp32_limit(const test::GoldenInfoNce& golden) {
  const double limit = test::tolerance(test::problem(golden.batch, 1, golden.columns, golden.temperature));
  return golden.temperature > 0.05 ? std::min(1e-6, limit) : limit;
}

// fp64 differs from numpy by the order of its sums.
TEST(CheckLossOutside, MatchesTheStoredValues) {
  for (const auto& golden : test::golden_infonce()) {
    const LossSettings settings{.temperature = golden.temperature, .margin = golden.margin};
    const auto fp64 = run_parts<ExactInfoNce>(view_pair(golden.z, golden.columns), settings, 3);
    const auto fp32 = run_parts<TrainingInfoNce>(view_pair(test::to_float(golden.z), golden.columns), settings, 3);
    const double limit = fp32_limit(golden);
    fmt::print("N={} C={} tau={} margin={}: fp64 loss {:.1e}, dL/dz {:.1e}; fp32 {:.1e}, {:.1e}, limit {:.1e}\n",
               golden.batch, golden.columns, golden.temperature, golden.margin, std::abs(fp64.loss() / golden.loss - 1),
               relative_error(fp64.grad_z, golden.grad_z), std::abs(fp32.loss() / golden.loss - 1),
               relative_error(fp32.grad_z, golden.grad_z), limit);
    EXPECT_NEAR(fp64.loss() / golden.loss, 1, 1e-12);
    EXPECT_LE(relative_error(fp64.grad_z, golden.grad_z), 1e-12);
    EXPECT_NEAR(fp32.loss() / golden.loss, 1, limit);
    EXPECT_LE(relative_error(fp32.grad_z, golden.grad_z), limit);
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
