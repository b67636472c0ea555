// batch_norm: numbers by hand, the reference by finite differences, the device against the reference.
#include "kernels/batch_norm/batch_norm.h"

#include <string>
#include <tuple>

#include "tests/kernels/batch_norm_support.h"

namespace simclr {
namespace {

using test::BatchNormCase;
using test::BatchNormInputs;
using testing::ElementsAre;
using testing::FloatEq;

// x = 1 3 5 7: mean 4, var (9+1+1+9)/4 = 5; with eps = 4 the deviation is 3, xhat = -1 -1/3 1/3 1.
BatchNormCase hand_case() {
  return {.shape = {.shards = 1, .samples = 2, .channels = 1, .height = 1, .width = 2}, .eps = 4};
}
BatchNormInputs hand_inputs() {
  return {.x = {1, 3, 5, 7}, .residual = {}, .grad_y = {1, 2, 3, 4}, .gamma = {3}, .beta = {1}};
}

TEST(BatchNorm, HandNumbers) {
  const auto got = test::run_batch_norm(hand_case(), 1, 1, hand_inputs());
  EXPECT_EQ(got.sums[0], 16);                // 1+3+5+7
  EXPECT_EQ(got.sums[channel_block()], 84);  // 1+9+25+49
  EXPECT_EQ(got.mean[0], 4);
  EXPECT_EQ(got.var[0], 5);
  EXPECT_THAT(got.y, ElementsAre(FloatEq(-2), FloatEq(0), FloatEq(2), FloatEq(4)));  // 3 xhat + 1
  EXPECT_THAT(got.grad_beta, ElementsAre(10));
  EXPECT_THAT(got.grad_gamma, ElementsAre(FloatEq(10.0F / 3)));  // -1 - 2/3 + 1 + 4
  // gamma/3 = 1, so grad_x = g - 10/4 - xhat * (10/3)/4
  const double grad_x[] = {-2.0 / 3, -2.0 / 9, 2.0 / 9, 2.0 / 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got.grad_x[i], grad_x[i], 1e-6) << i;
  EXPECT_THAT(got.running_mean, ElementsAre(FloatEq(0.4F)));                 // 0.9 * 0 + 0.1 * 4
  EXPECT_THAT(got.running_var, ElementsAre(FloatEq(0.9F + 0.1F * 20 / 3)));  // unbiased: 20/3
}

TEST(BatchNorm, HandNumbersWithReluAndResidual) {
  BatchNormCase c = hand_case();
  c.relu = c.residual = true;
  BatchNormInputs in = hand_inputs();
  in.residual = {3, -1, 1, -5};  // 3 xhat + 1 + residual = 1 -1 3 -1
  const auto got = test::run_batch_norm(c, 1, 1, in);
  EXPECT_THAT(got.y, ElementsAre(FloatEq(1), 0, FloatEq(3), 0));
  EXPECT_THAT(got.grad_residual, ElementsAre(1, 0, 3, 0));
  EXPECT_THAT(got.grad_beta, ElementsAre(4));
  EXPECT_THAT(got.grad_gamma, ElementsAre(testing::FloatNear(0, 1e-6F)));  // -1*1 + 3*1/3
  const double grad_x[] = {0, -1, 2, -1};                                  // g - 4/4 - xhat * 0
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got.grad_x[i], grad_x[i], 1e-6) << i;
}

TEST(BatchNorm, HandNumbersOfSeparateViews) {
  BatchNormCase c = hand_case();
  c.groups = 2, c.eps = 3;  // view 1 is 1 3, view 2 is 5 7: means 2 and 6, both variances 1, deviation sqrt(1 + 3) = 2
  const auto got = test::run_batch_norm(c, 1, 1, hand_inputs());
  EXPECT_EQ(got.mean[0], 2);
  EXPECT_EQ(got.mean[channel_block()], 6);
  EXPECT_THAT(got.y, ElementsAre(-0.5F, 2.5F, -0.5F, 2.5F));  // 3 * (+-1)/2 + 1
  EXPECT_THAT(got.grad_gamma, ElementsAre(1));                // (-1+2)/2 + (-3+4)/2
  // running mean: 0.1*2 = 0.2 after view 1, 0.9*0.2 + 0.1*6 = 0.78 after view 2; unbiased variances are 2 and 2:
  // 0.9 + 0.2 = 1.1, then 0.9*1.1 + 0.2 = 1.19
  EXPECT_THAT(got.running_mean, ElementsAre(FloatEq(0.78F)));
  EXPECT_THAT(got.running_var, ElementsAre(FloatEq(1.19F)));
}

// Central differences of L = sum(grad_y * y) in double with h = 1e-5: the cut-off is h^2 |L'''|/6, about 1e-10 for
// derivatives of order 1, the rounding 1e-16 |L| / h = 1e-10. No value may pass ReLU's corner: none is within 1e-3.
TEST(BatchNormRef, GradientsAreDifferenceQuotients) {
  for (const int groups : {1, 2}) {
    const BatchNormCase c{.shape = {2, 2, 2, 2, 1}, .groups = groups, .relu = true, .residual = true};
    const BatchNormInputs in = test::random_batch_norm_inputs(c);
    const auto grad_y = test::widen(in.grad_y);
    std::vector<double> at[4] = {test::widen(in.x), test::widen(in.gamma), test::widen(in.beta),
                                 test::widen(in.residual)};
    const auto output = [&](bool relu) {
      return batch_norm_ref::forward(c.ref_shape(), at[0], at[1], at[2], at[3], relu, c.eps).y;
    };
    for (const double v : output(false)) ASSERT_GT(std::fabs(v), 1e-3);
    const auto loss = [&] {
      const auto y = output(true);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += grad_y[i] * y[i];
      return sum;
    };
    const auto grad = batch_norm_ref::backward(c.ref_shape(), grad_y, at[0], output(true), at[1], c.eps);
    const std::vector<double>* analytic[] = {&grad.grad_x, &grad.grad_gamma, &grad.grad_beta, &grad.grad_residual};
    const double h = 1e-5;
    for (int which = 0; which < 4; ++which) {
      for (size_t i = 0; i < at[which].size(); ++i) {
        const double here = at[which][i];
        at[which][i] = here + h;
        const double above = loss();
        at[which][i] = here - h;
        const double below = loss();
        at[which][i] = here;
        EXPECT_NEAR((above - below) / (2 * h), (*analytic[which])[i], 1e-8) << which << " " << i;
      }
    }
  }
}

enum class Mode { kPlain, kRelu, kResidualRelu };
using Sizes = std::pair<int64_t, int64_t>;  // of a map
class BatchNormAgainstReference : public testing::TestWithParam<std::tuple<int64_t, Sizes, int, Mode>> {};

// Inputs are of order 1, so every term of an output is at most a few times the largest output. About ten roundings
// make 1e1 * 6e-8, and the sums within a map of 1,024 places, four chains of 256 that err like random walks, the same
// again: 4e-6 of the largest element, while a sum over M - 1 or a lost sample changes 1e-4 or more here.
TEST_P(BatchNormAgainstReference, Agrees) {
  const auto [channels, sizes, groups, mode] = GetParam();
  const BatchNormCase c{.shape = {2, sizes.first == 32 ? 2 : 4, channels, sizes.first, sizes.second},
                        .groups = groups,
                        .relu = mode != Mode::kPlain,
                        .residual = mode == Mode::kResidualRelu};
  const BatchNormInputs in = test::random_batch_norm_inputs(c);
  const auto got = test::run_batch_norm(c, 1, 2, in);
  const auto x = test::widen(in.x), gamma = test::widen(in.gamma), grad_y = test::widen(in.grad_y);
  const auto want =
      batch_norm_ref::forward(c.ref_shape(), x, gamma, test::widen(in.beta), test::widen(in.residual), c.relu, c.eps);
  const double bound = 4e-6;
  EXPECT_LT(test::relative_error(got.y, want.y), bound);
  for (int g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < channels; ++i) {
      const auto k = static_cast<size_t>(g * padded_cols(channels) + i), r = static_cast<size_t>(g * channels + i);
      EXPECT_NEAR(got.mean[k], want.mean[r], bound);
      EXPECT_NEAR(got.var[k], want.var[r], bound * want.var[r]);
    }
  }
  // The mask is the device's own: a value within rounding of zero may have another sign in the reference.
  const auto relu_y = c.relu ? test::widen(got.y) : std::vector<double>();
  const auto grad = batch_norm_ref::backward(c.ref_shape(), grad_y, x, relu_y, gamma, c.eps);
  EXPECT_LT(test::relative_error(got.grad_x, grad.grad_x), bound);
  // These two cancel, so their measure is sum |g xhat| and sum |g|, both at most M (|g| <= 1, xhat has norm sqrt(M)).
  const auto count = static_cast<double>(c.group_count() * groups);
  EXPECT_TRUE(test::within(got.grad_gamma, grad.grad_gamma, [&](size_t) { return 1e-6 * count; }));
  EXPECT_TRUE(test::within(got.grad_beta, grad.grad_beta, [&](size_t) { return 1e-6 * count; }));
  if (c.residual) {
    EXPECT_EQ(test::relative_error(got.grad_residual, grad.grad_residual), 0);
  }
}

std::string reference_case_name(const testing::TestParamInfo<BatchNormAgainstReference::ParamType>& instance) {
  const auto& [channels, sizes, groups, mode] = instance.param;
  const char* names[] = {"plain", "relu", "residual_relu"};
  return fmt::format("c{}_{}x{}_{}_{}", channels, sizes.first, sizes.second, groups == 1 ? "joint" : "separate",
                     names[static_cast<int>(mode)]);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormAgainstReference,
                         testing::Combine(testing::Values(1, 5, 16, 17, 33),
                                          testing::Values(Sizes{1, 1}, Sizes{4, 4}, Sizes{7, 5}, Sizes{32, 32}),
                                          testing::Values(1, 2),
                                          testing::Values(Mode::kPlain, Mode::kRelu, Mode::kResidualRelu)),
                         reference_case_name);

TEST(BatchNorm, EvaluationUsesRunningStatistics) {
  const test::Shape shape{1, 3, 17, 2, 3};
  const auto x = test::random_values(shape.elements(), 1), gamma = test::random_values(17, 2);
  const auto beta = test::random_values(17, 3), mean = test::random_values(17, 4);
  const auto var = test::random_values(17, 5, 0.5F, 2.0F);
  const auto padded = static_cast<size_t>(padded_cols(17));
  std::vector<float> m(padded, test::kNaN), inv_std(padded, test::kNaN);
  std::vector<double> v(padded, test::kNaN);
  const BatchNormStatistics statistics{17, 1, 0, m.data(), inv_std.data(), v.data()};
  const test::PoisonedContext context(2, batch_norm_scratch(1, 17, 1));
  test::FeatureMaps maps(shape, x);
  batch_norm_use_running(context.exec(), mean.data(), var.data(), 1e-3, statistics);
  batch_norm_apply(context.exec(), maps.view(), {.statistics = statistics, .gamma = gamma.data(), .beta = beta.data()},
                   maps.view());  // in place
  EXPECT_TRUE(maps.padding_is_zero());
  const auto y = maps.plain();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / 6 % 17;
    EXPECT_NEAR(y[i], gamma[c] * (double{x[i]} - mean[c]) / std::sqrt(var[c] + 1e-3) + beta[c], 1e-6) << i;
  }
}

}  // namespace
}  // namespace simclr
