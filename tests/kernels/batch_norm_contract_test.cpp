// batch_norm: what its contract promises beyond the formula: bits, large means, constant channels, NaN, the skip flag,
// values from outside, and what it refuses.
#include <algorithm>

#include "kernels/batch_norm/batch_norm.h"
#include "tests/golden/golden_support.h"
#include "tests/kernels/batch_norm_support.h"

namespace simclr {
namespace {

using test::BatchNormCase;
using test::BatchNormInputs;
using test::BatchNormResults;
using test::FeatureMaps;
using test::Shape;

void expect_same_bits(const BatchNormResults& a, const BatchNormResults& b) {
  EXPECT_TRUE(test::same_bits(a.y, b.y));
  EXPECT_TRUE(test::same_bits(a.grad_x, b.grad_x));
  EXPECT_TRUE(test::same_bits(a.grad_residual, b.grad_residual));
  EXPECT_TRUE(test::same_bits(a.grad_gamma, b.grad_gamma));
  EXPECT_TRUE(test::same_bits(a.grad_beta, b.grad_beta));
  EXPECT_TRUE(test::same_bits(a.running_mean, b.running_mean));
  EXPECT_TRUE(test::same_bits(a.running_var, b.running_var));
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.grad_sums, b.grad_sums);
}

TEST(BatchNormBits, DependNeitherOnRanksNorOnThreads) {
  for (const int groups : {1, 2}) {
    const BatchNormCase c{.shape = {8, 2, 17, 4, 3}, .groups = groups, .relu = true, .residual = true};
    BatchNormInputs in = test::random_batch_norm_inputs(c);
    // Shards of very different size, so that sums in double show their order.
    for (size_t i = 0; i < in.x.size(); ++i) {
      const auto shard = static_cast<int>(i / (in.x.size() / 8));
      in.x[i] = std::ldexp(in.x[i], 4 * (shard * 3 % 8)), in.grad_y[i] = std::ldexp(in.grad_y[i], 4 * (shard * 5 % 8));
    }
    const auto one = test::run_batch_norm(c, 1, 1, in);
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} groups, {} ranks, {} threads", groups, ranks, threads));
        expect_same_bits(one, test::run_batch_norm(c, ranks, threads, in));
      }
    }
    // The order is visible in these inputs: shard after shard gives other bits.
    const FeatureMaps x(c.shape, in.x);
    std::vector<double> part(one.sums.size()), in_sequence(one.sums.size());
    const test::PoisonedContext context(1, batch_norm_scratch(1, 17, groups));
    for (int64_t s = 0; s < 8; ++s) {
      batch_norm_sums(context.exec(), test::shards_of(ConstActivation(x.view()), s, 1), groups, part.data());
      for (size_t i = 0; i < part.size(); ++i) in_sequence[i] += part[i];
    }
    EXPECT_NE(in_sequence, one.sums);
  }
}

// Mean 1000, deviation 1: a sum of squares in float (or about zero, in float) would lose six of seven digits. Here the
// variance errs by rounding alone; the mean is kept as a float, so y is off by |mean| u = 6e-5 deviations at most,
// which is half of what the inputs themselves are rounded by.
TEST(BatchNorm, LargeMeansLoseNothing) {
  const BatchNormCase c{.shape = {4, 4, 3, 7, 5}};
  BatchNormInputs in = test::random_batch_norm_inputs(c);
  for (float& v : in.x) v = 1000.0F + 2.0F * (v - 0.5F) / 1.7320508F;  // uniform in +-1.5 has deviation sqrt(3)/2
  const auto got = test::run_batch_norm(c, 1, 1, in);
  const auto x = test::widen(in.x), gamma = test::widen(in.gamma);
  const auto want = batch_norm_ref::forward(c.ref_shape(), x, gamma, test::widen(in.beta), {}, false, c.eps);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_NEAR(want.var[i], 1, 0.2);
    EXPECT_NEAR(got.var[i], want.var[i], 2e-6 * want.var[i]);
    EXPECT_NEAR(got.mean[i], want.mean[i], 1000 * test::kUnit);
  }
  EXPECT_TRUE(test::within(got.y, want.y, [](size_t) { return 1.5 * 1.1 * 1000 * test::kUnit; }));
  const auto grad = batch_norm_ref::backward(c.ref_shape(), test::widen(in.grad_y), x, {}, gamma, c.eps);
  EXPECT_LT(test::relative_error(got.grad_x, grad.grad_x), 1e-5);
}

TEST(BatchNorm, ConstantChannelsGiveBeta) {
  for (const float value : {0.0F, 3.3F, -1e4F, 1e-30F}) {
    const BatchNormCase c{.shape = {8, 3, 2, 3, 3}, .relu = false};
    BatchNormInputs in = test::random_batch_norm_inputs(c);
    for (float& v : in.x) v = value;
    const auto got = test::run_batch_norm(c, 2, 1, in);
    for (size_t i = 0; i < got.y.size(); ++i) ASSERT_EQ(got.y[i], in.beta[i / 9 % 2]) << value;
    // xhat = 0: grad_x = gamma / sqrt(eps) * (g - mean g), 316 times as big as g and no more
    const auto grad = batch_norm_ref::backward(c.ref_shape(), test::widen(in.grad_y), test::widen(in.x), {},
                                               test::widen(in.gamma), c.eps);
    EXPECT_LT(test::relative_error(got.grad_x, grad.grad_x), 1e-3) << value;
  }
}

TEST(BatchNorm, NanPassesReluAndStaysInItsChannel) {
  const BatchNormCase c{.shape = {2, 2, 3, 2, 2}, .relu = true};
  BatchNormInputs in = test::random_batch_norm_inputs(c);
  in.x[4] = test::kNaN;  // channel 1 of the first sample
  const auto got = test::run_batch_norm(c, 1, 1, in);
  for (size_t i = 0; i < got.y.size(); ++i) EXPECT_EQ(std::isnan(got.y[i]), i / 4 % 3 == 1) << i;
  EXPECT_TRUE(std::isnan(got.running_var[1]));
  EXPECT_TRUE(std::isfinite(got.running_var[0]));
}

// Sums whose rounding leaves a variance below zero, and a NaN, as an update must not hide it.
TEST(BatchNorm, VarianceBelowZeroIsRounding) {
  const auto padded = static_cast<size_t>(padded_cols(2));
  std::vector<double> sums(2 * padded);
  sums[0] = 4, sums[padded] = 4 - 1e-4;  // of four values: mean 1, variance -2.5e-5
  sums[1] = std::nan(""), sums[padded + 1] = 4;
  std::vector<float> mean(padded), inv_std(padded), running_mean(2), running_var(2, 1.0F);
  std::vector<double> var(padded);
  BatchNormStatistics statistics{2, 1, 4, mean.data(), inv_std.data(), var.data()};
  batch_norm_statistics(CpuExec{}, sums.data(), 1.0 / 16, statistics);
  EXPECT_EQ(mean[0], 1);
  EXPECT_EQ(var[0], 0);
  EXPECT_EQ(inv_std[0], 4);
  EXPECT_TRUE(std::isnan(var[1]) && std::isnan(inv_std[1]));
  // A single value has no unbiased variance: the biased one is taken.
  const int skip = 0;
  statistics.channels = statistics.count = 1;
  batch_norm_update_running(CpuExec{}, statistics, 0.5, &skip, running_mean.data(), running_var.data());
  EXPECT_EQ(running_mean[0], 0.5F);
  EXPECT_EQ(running_var[0], 0.5F);
}

TEST(BatchNorm, SkipLeavesRunningStatisticsUntouched) {
  const auto padded = static_cast<size_t>(padded_cols(2));
  std::vector<float> mean(padded, 5.0F), inv_std(padded, 1.0F);
  std::vector<double> var(padded, 3.0);
  std::vector<float> running_mean = {-0.0F, 2.0F}, running_var = {1.0F, test::kNaN};
  const auto mean_before = running_mean, var_before = running_var;
  const Exec exec = CpuExec{};
  const BatchNormStatistics statistics{2, 1, 4, mean.data(), inv_std.data(), var.data()};
  int skip = 1;
  batch_norm_update_running(exec, statistics, 0.1, &skip, running_mean.data(), running_var.data());
  EXPECT_TRUE(test::same_bits(running_mean, mean_before));
  EXPECT_TRUE(test::same_bits(running_var, var_before));
  skip = 0;
  batch_norm_update_running(exec, statistics, 0.1, &skip, running_mean.data(), running_var.data());
  EXPECT_FLOAT_EQ(running_mean[1], 2.3F);  // 0.9*2 + 0.1*5
  EXPECT_FLOAT_EQ(running_var[0], 1.3F);   // 0.9*1 + 0.1*3 * 4/3
}

TEST(BatchNorm, AliasesThatTheContractAllowsGiveTheSame) {
  const Shape shape{2, 2, 5, 3, 2};
  const BatchNormCase c{.shape = shape, .relu = true};
  const BatchNormInputs in = test::random_batch_norm_inputs(c);
  const auto want = test::run_batch_norm(c, 1, 1, in);
  auto sums = want.grad_sums;
  auto mean = want.mean, inv_std = want.inv_std;
  auto var = want.var;
  const BatchNormStatistics statistics = c.statistics(mean.data(), inv_std.data(), var.data());
  const test::PoisonedContext context(2, batch_norm_scratch(2, 5, 1));
  const FeatureMaps x(shape, in.x);
  FeatureMaps y(shape, in.x), grad(shape, in.grad_y);
  batch_norm_apply(context.exec(), y.view(),
                   {.statistics = statistics, .relu = true, .gamma = in.gamma.data(), .beta = in.beta.data()},
                   y.view());
  EXPECT_TRUE(test::same_bits(y.plain(), want.y));
  batch_norm_backward_apply(context.exec(), grad.view(), x.view(),
                            {.statistics = statistics, .gamma = in.gamma.data(), .relu_y = y.view().data}, sums.data(),
                            grad.view());
  EXPECT_TRUE(test::same_bits(grad.plain(), want.grad_x));
}

// Backward of a fused ReLU from x and beta, and from the stored output.
TEST(BatchNorm, YComputedAgainHasTheSignOfTheStoredOne) {
  test::AboutZero z = test::about_zero();
  std::vector<double> var(z.mean.size(), 1.0);
  const BatchNormStatistics statistics = z.c.statistics(z.mean.data(), z.inv_std.data(), var.data());
  const test::PoisonedContext context(2, batch_norm_scratch(z.c.shape.shards, z.c.shape.channels, 1));
  const FeatureMaps x(z.c.shape, z.in.x), grad_y(z.c.shape, z.in.grad_y);
  FeatureMaps y(z.c.shape);
  batch_norm_apply(context.exec(), x.view(),
                   {.statistics = statistics, .relu = true, .gamma = z.in.gamma.data(), .beta = z.in.beta.data()},
                   y.view());
  const std::vector<float> output = y.plain();
  const auto passed = std::ranges::count_if(output, [](float v) { return v > 0.0F; });
  EXPECT_GT(passed, std::ssize(output) / 5);
  EXPECT_LT(passed, std::ssize(output) * 4 / 5);

  const auto backward = [&](const BatchNormBackward& how) {
    std::vector<double> sums(batch_norm_sum_elements(z.c.shape.channels, 1));
    FeatureMaps grad_x(z.c.shape);
    batch_norm_backward_sums(context.exec(), grad_y.view(), x.view(), how, nullptr, sums.data());
    batch_norm_backward_apply(context.exec(), grad_y.view(), x.view(), how, sums.data(), grad_x.view());
    return std::pair(sums, grad_x.plain());
  };
  const auto computed = backward({.statistics = statistics, .gamma = z.in.gamma.data(), .beta = z.in.beta.data()});
  const auto stored = backward({.statistics = statistics, .gamma = z.in.gamma.data(), .relu_y = y.view().data});
  EXPECT_EQ(computed.first, stored.first);
  EXPECT_TRUE(test::same_bits(computed.second, stored.second));
}

// Values in float64 from outside, for 1, 2 and 4 ranks. x is rounded to float, which loses its last bit.
TEST(BatchNorm, MatchesTheStoredValues) {
  for (const auto& golden : test::golden_batch_norm()) {
    const BatchNormCase c{.shape = {4, golden.samples / 4, golden.channels, golden.height, golden.width},
                          .eps = golden.eps,
                          .momentum = golden.momentum};
    const BatchNormInputs in{.x = test::to_float(golden.x),
                             .residual = {},
                             .grad_y = test::to_float(golden.grad_y),
                             .gamma = test::to_float(golden.gamma),
                             .beta = test::to_float(golden.beta)};
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("[{}, {}, {}, {}], {} ranks", golden.samples, golden.channels, golden.height,
                               golden.width, ranks));
      const auto got = test::run_batch_norm(c, ranks, 1, in);
      EXPECT_LT(test::relative_error(got.y, golden.y), 1e-5);
      EXPECT_LT(test::relative_error(got.grad_x, golden.grad_x), 1e-5);
      EXPECT_LT(test::relative_error(got.grad_gamma, golden.grad_gamma), 1e-5);
      EXPECT_LT(test::relative_error(got.grad_beta, golden.grad_beta), 1e-5);
      EXPECT_LT(test::relative_error(got.running_mean, golden.running_mean), 1e-5);
      EXPECT_LT(test::relative_error(got.running_var, golden.running_var), 1e-5);
    }
  }
}

TEST(BatchNorm, RefusesWrongShapes) {
  const Exec none = CpuExec{};
  const test::PoisonedContext context(1, batch_norm_scratch(2, 3, 2));
  const Exec& exec = context.exec();
  std::vector<float> floats(64);
  std::vector<double> doubles(64);
  const BatchNormStatistics s{3, 1, 8, floats.data(), floats.data(), doubles.data()};
  const auto with = [&](int64_t channels, int groups, int64_t count) {
    return BatchNormStatistics{channels, groups, count, floats.data(), floats.data(), doubles.data()};
  };
  const BatchNormApply apply{.statistics = s, .gamma = floats.data(), .beta = floats.data()};
  FeatureMaps x({2, 3, 3, 2, 2}), other({2, 3, 3, 2, 1});
  EXPECT_THAT([&] { batch_norm_sums(exec, x.view(), 3, doubles.data()); }, test::fires("not 3"));
  EXPECT_THAT([&] { batch_norm_sums(exec, x.view(), 2, doubles.data()); }, test::fires("3 samples a shard"));
  EXPECT_THAT(
      [&] {
        batch_norm_sums(exec, {x.view().data, 2, 3, 3, 0, 2}, 1, doubles.data());
      },
      test::fires("of nothing"));
  EXPECT_THAT([&] { batch_norm_sums(none, x.view(), 1, doubles.data()); }, test::fires("bytes of workspace"));
  EXPECT_THAT([&] { batch_norm_statistics(exec, doubles.data(), 1e-5, with(3, 1, 0)); }, test::fires("over 0 values"));
  EXPECT_THAT([&] { batch_norm_statistics(exec, doubles.data(), 0, s); }, test::fires("eps 0"));
  EXPECT_THAT([&] { batch_norm_apply(exec, x.view(), apply, other.view()); }, test::fires("another shape"));
  EXPECT_THAT(
      [&] { batch_norm_backward_sums(exec, other.view(), x.view(), {.statistics = s}, nullptr, doubles.data()); },
      test::fires("another shape"));
  const auto backward = [&](const BatchNormStatistics& statistics, const Activation& grad_x) {
    batch_norm_backward_apply(exec, x.view(), x.view(), {.statistics = statistics}, doubles.data(), grad_x);
  };
  EXPECT_THAT([&] { backward(s, other.view()); }, test::fires("another shape"));
  EXPECT_THAT([&] { backward(with(3, 1, 0), x.view()); }, test::fires("over 0 values"));
  EXPECT_THAT([&] { backward(with(4, 1, 8), x.view()); }, test::fires("3 channels with statistics of 4"));
  const int skip = 0;
  EXPECT_THAT([&] { batch_norm_update_running(exec, with(3, 1, 0), 0.1, &skip, floats.data(), floats.data()); },
              test::fires("from 0 values"));
  EXPECT_THAT([&] { batch_norm_use_running(exec, floats.data(), floats.data(), 1e-5, with(3, 2, 8)); },
              test::fires("one group of statistics, not 2"));
}

// 1/sqrt(inf) = 0 would turn an overflow into a constant output that looks healthy.
TEST(BatchNorm, AnOverflowOfTheSumsIsNaNAndNotZero) {
  const int64_t padded = channel_block();
  std::vector<double> sums(2 * padded, 1.0), var(static_cast<size_t>(padded));
  sums[padded] = INFINITY;  // sum x^2 of channel 0
  std::vector<float> mean(padded), inv_std(static_cast<size_t>(padded));
  batch_norm_statistics(CpuExec{}, sums.data(), 1e-5, {2, 1, 4, mean.data(), inv_std.data(), var.data()});
  EXPECT_TRUE(std::isnan(inv_std[0]));
  EXPECT_TRUE(std::isfinite(inv_std[1]));
}

}  // namespace
}  // namespace simclr
