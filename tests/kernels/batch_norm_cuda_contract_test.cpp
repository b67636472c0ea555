// batch_norm on CUDA: what its contract promises beyond the formula: large means, constant channels, NaN, aliases, the
// running statistics, and what it refuses; in both storage types.
#include "tests/kernels/batch_norm_cuda_support.h"

namespace simclr {
namespace {

using test::BatchNormCase;
using test::BatchNormInputs;
using test::CudaFeatureMaps;
using test::DeviceArray;
using test::run_batch_norm_on_cuda;
using test::stored_inputs;

class BatchNormCudaOfType : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, BatchNormCudaOfType, testing::ValuesIn(test::kStorageTypes),
                         [](const auto& instance) { return test::name_of(instance.param); });

// Mean 1000, deviation 1: sums about zero would lose six of seven digits of the variance. Stored as bfloat16 such
// values are multiples of 4 or 8, but of those stored values the statistics are as exact.
TEST_P(BatchNormCudaOfType, LargeMeansLoseNothing) {
  const DataType type = GetParam();
  const BatchNormCase c{.shape = {4, 4, 3, 7, 11}};
  BatchNormInputs in = test::random_batch_norm_inputs(c);
  const float spread = type == DataType::kBfloat16 ? 16.0F : 1.0F;
  for (float& v : in.x) v = 1000.0F + spread * (v - 0.5F);
  in = stored_inputs(type, in);
  const auto got = run_batch_norm_on_cuda(type, c, 1, in);
  const auto want = batch_norm_ref::forward(c.ref_shape(), test::widen(in.x), test::widen(in.gamma),
                                            test::widen(in.beta), {}, false, c.eps);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(got.var[i], want.var[i], 2e-6 * want.var[i]);
    EXPECT_NEAR(got.mean[i], want.mean[i], 1000 * test::kUnit);
  }
  // The mean is kept as a float: 1000 u of an input, divided by a deviation of about 0.87 spread, times gamma <= 1.5.
  EXPECT_TRUE(test::within(got.y, want.y, [&](size_t i) {
    return test::unit_of(type) * std::fabs(want.y[i]) + 2 * 1.5 * 1000 * test::kUnit / (0.87 * spread);
  }));
}

TEST_P(BatchNormCudaOfType, ConstantChannelsGiveBeta) {
  for (const float value : {0.0F, 3.3F, -1e4F, 1e-30F}) {
    const BatchNormCase c{.shape = {8, 3, 2, 3, 3}};
    BatchNormInputs in = test::random_batch_norm_inputs(c);
    for (float& v : in.x) v = value;
    const auto got = run_batch_norm_on_cuda(GetParam(), c, 2, stored_inputs(GetParam(), in));
    const auto beta = test::as_stored(GetParam(), in.beta);
    for (size_t i = 0; i < got.y.size(); ++i) ASSERT_EQ(got.y[i], beta[i / 9 % 2]) << value;
  }
}

TEST_P(BatchNormCudaOfType, NanPassesReluAndStaysInItsChannel) {
  const BatchNormCase c{.shape = {2, 2, 3, 2, 2}, .relu = true, .residual = true};
  BatchNormInputs in = stored_inputs(GetParam(), test::random_batch_norm_inputs(c));
  in.x[4] = test::kNaN;  // channel 1 of the first sample
  const auto got = run_batch_norm_on_cuda(GetParam(), c, 1, in);
  for (size_t i = 0; i < got.y.size(); ++i) EXPECT_EQ(std::isnan(got.y[i]), i / 4 % 3 == 1) << i;
  EXPECT_TRUE(std::isnan(got.running_var[1]));
  EXPECT_TRUE(std::isfinite(got.running_var[0]));
}

TEST_P(BatchNormCudaOfType, AliasesThatTheContractAllowsGiveTheSame) {
  const DataType type = GetParam();
  const test::Shape shape{2, 2, 5, 3, 2};
  const BatchNormCase c{.shape = shape, .relu = true};
  const BatchNormInputs in = stored_inputs(type, test::random_batch_norm_inputs(c));
  const auto want = run_batch_norm_on_cuda(type, c, 1, in);
  const DeviceArray<float> mean(want.mean), inv_std(want.inv_std), gamma(in.gamma), beta(in.beta);
  const DeviceArray<double> var(want.var), sums(want.grad_sums);
  const BatchNormStatistics statistics = c.statistics(mean.data(), inv_std.data(), var.data());
  const test::CudaRun run(test::precision_of(type), {});
  const CudaFeatureMaps x(type, shape, in.x), y(type, shape, in.x), grad(type, shape, in.grad_y);
  batch_norm_apply(run.exec(), y.view(),
                   {.statistics = statistics, .relu = true, .gamma = gamma.data(), .beta = beta.data()}, y.view());
  EXPECT_TRUE(test::same_bits(y.plain(), want.y));
  batch_norm_backward_apply(run.exec(), grad.view(), x.view(),
                            {.statistics = statistics, .gamma = gamma.data(), .relu_y = y.view().data}, sums.data(),
                            grad.view());
  EXPECT_TRUE(test::same_bits(grad.plain(), want.grad_x));
}

// Backward of a fused ReLU from x and beta, and from the stored output.
TEST_P(BatchNormCudaOfType, YComputedAgainHasTheSignOfTheStoredOne) {
  const DataType type = GetParam();
  test::AboutZero z = test::about_zero();
  z.in = stored_inputs(type, z.in);
  const DeviceArray<float> mean(z.mean), inv_std(z.inv_std), gamma(z.in.gamma), beta(z.in.beta);
  const DeviceArray<double> var(std::vector<double>(z.mean.size(), 1.0));
  const BatchNormStatistics statistics = z.c.statistics(mean.data(), inv_std.data(), var.data());
  const test::CudaRun run(test::precision_of(type), batch_norm_scratch(z.c.shape.shards, z.c.shape.channels, 1));
  const CudaFeatureMaps x(type, z.c.shape, z.in.x), grad_y(type, z.c.shape, z.in.grad_y), y(type, z.c.shape);
  batch_norm_apply(run.exec(), x.view(),
                   {.statistics = statistics, .relu = true, .gamma = gamma.data(), .beta = beta.data()}, y.view());
  const std::vector<float> output = y.plain();
  const auto passed = std::ranges::count_if(output, [](float v) { return v > 0.0F; });
  EXPECT_GT(passed, 0);
  EXPECT_LT(passed, std::ssize(output));

  const auto backward = [&](const BatchNormBackward& how) {
    const DeviceArray<double> sums(static_cast<size_t>(batch_norm_sum_elements(z.c.shape.channels, 1)));
    const CudaFeatureMaps grad_x(type, z.c.shape);
    batch_norm_backward_sums(run.exec(), grad_y.view(), x.view(), how, nullptr, sums.data());
    batch_norm_backward_apply(run.exec(), grad_y.view(), x.view(), how, sums.data(), grad_x.view());
    return std::pair(sums.download(), grad_x.plain());
  };
  const auto computed = backward({.statistics = statistics, .gamma = gamma.data(), .beta = beta.data()});
  const auto stored = backward({.statistics = statistics, .gamma = gamma.data(), .relu_y = y.view().data});
  EXPECT_EQ(computed.first, stored.first);
  EXPECT_TRUE(test::same_bits(computed.second, stored.second));
}

TEST_P(BatchNormCudaOfType, EvaluationUsesRunningStatistics) {
  const DataType type = GetParam();
  const test::Shape shape{1, 3, 17, 2, 3};
  const auto x = test::as_stored(type, test::random_values(shape.elements(), 1));
  const auto gamma = test::random_values(17, 2), beta = test::random_values(17, 3), mean = test::random_values(17, 4);
  const auto var = test::random_values(17, 5, 0.5F, 2.0F);
  const auto padded = static_cast<size_t>(padded_cols(17));
  const DeviceArray<float> m(padded), inv_std(padded), running_mean(mean), running_var(var), scale(gamma), shift(beta);
  const DeviceArray<double> v(padded);
  const BatchNormStatistics statistics{17, 1, 0, m.data(), inv_std.data(), v.data()};
  const test::CudaRun run(test::precision_of(type), {});
  const CudaFeatureMaps in(type, shape, x), out(type, shape);
  batch_norm_use_running(run.exec(), running_mean.data(), running_var.data(), 1e-3, statistics);
  batch_norm_apply(run.exec(), in.view(), {.statistics = statistics, .gamma = scale.data(), .beta = shift.data()},
                   out.view());
  EXPECT_TRUE(out.padding_is_zero());
  const auto y = out.plain();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / 6 % 17;
    const double want = gamma[c] * (double{x[i]} - mean[c]) / std::sqrt(var[c] + 1e-3) + beta[c];
    EXPECT_NEAR(y[i], want, 1e-6 + test::unit_of(type) * std::fabs(want)) << i;
  }
  EXPECT_EQ(m.download().back(), 0);
  EXPECT_EQ(v.download().back(), 0);
}

TEST(BatchNormCuda, VarianceBelowZeroIsRoundingAndAnOverflowIsNan) {
  const auto padded = static_cast<size_t>(padded_cols(3));
  std::vector<double> sums(2 * padded, 1.0);
  sums[0] = 4, sums[padded] = 4 - 1e-4;  // of four values: mean 1, variance -2.5e-5
  sums[1] = std::nan("");
  sums[padded + 2] = INFINITY;  // 1/sqrt(inf) = 0 would look healthy
  const DeviceArray<double> from(sums), var(padded);
  const DeviceArray<float> mean(padded), inv_std(padded);
  const test::CudaRun run(Precision::kFp32, {});
  batch_norm_statistics(run.exec(), from.data(), 1.0 / 16, {3, 1, 4, mean.data(), inv_std.data(), var.data()});
  EXPECT_EQ(mean.download()[0], 1);
  EXPECT_EQ(var.download()[0], 0);
  EXPECT_EQ(inv_std.download()[0], 4);
  EXPECT_TRUE(std::isnan(var.download()[1]) && std::isnan(inv_std.download()[1]));
  EXPECT_TRUE(std::isnan(inv_std.download()[2]));
}

TEST(BatchNormCuda, SkipLeavesRunningStatisticsUntouched) {
  const auto padded = static_cast<size_t>(padded_cols(2));
  const DeviceArray<float> mean(std::vector<float>(padded, 5.0F)), inv_std(std::vector<float>(padded, 1.0F));
  const DeviceArray<double> var(std::vector<double>(padded, 3.0));
  const std::vector<float> mean_before = {-0.0F, 2.0F}, var_before = {1.0F, test::kNaN};
  const DeviceArray<float> running_mean(mean_before), running_var(var_before);
  const BatchNormStatistics statistics{2, 1, 4, mean.data(), inv_std.data(), var.data()};
  const test::CudaRun run(Precision::kFp32, {});
  DeviceArray<int> skip(std::vector<int>{1});
  const auto update = [&] {
    batch_norm_update_running(run.exec(), statistics, 0.1, skip.data(), running_mean.data(), running_var.data());
  };
  update();
  EXPECT_TRUE(test::same_bits(running_mean.download(), mean_before));
  EXPECT_TRUE(test::same_bits(running_var.download(), var_before));
  skip.upload(std::vector<int>{0});
  update();
  EXPECT_FLOAT_EQ(running_mean.download()[1], 2.3F);  // 0.9*2 + 0.1*5
  EXPECT_FLOAT_EQ(running_var.download()[0], 1.3F);   // 0.9*1 + 0.1*3 * 4/3
}

TEST(BatchNormCuda, RefusesAWorkspaceThatIsTooSmall) {
  const test::CudaRun run(Precision::kFp32, {});
  const CudaFeatureMaps x(DataType::kFloat32, {2, 2, 3, 2, 2});
  const DeviceArray<double> sums(64);
  EXPECT_THAT([&] { batch_norm_sums(run.exec(), x.view(), 1, sums.data()); }, test::fires("bytes of workspace"));
}

}  // namespace
}  // namespace simclr
