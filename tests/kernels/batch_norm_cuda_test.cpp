// batch_norm on CUDA: numbers by hand, the CPU op on awkward sizes, and the promise on bits; in both storage types.
#include <string>
#include <tuple>

#include "tests/kernels/batch_norm_cuda_support.h"

namespace simclr {
namespace {

using test::BatchNormCase;
using test::BatchNormInputs;
using test::BatchNormResults;
using test::run_batch_norm_on_cuda;
using test::stored_inputs;
using testing::ElementsAre;
using testing::FloatEq;

// x = 1 3 5 7: mean 4, var (9+1+1+9)/4 = 5; with eps = 4 the deviation is 3, xhat = -1 -1/3 1/3 1.
TEST(BatchNormCuda, HandNumbers) {
  const BatchNormCase c{.shape = {.shards = 1, .samples = 2, .channels = 1, .height = 1, .width = 2}, .eps = 4};
  const BatchNormInputs in{.x = {1, 3, 5, 7}, .residual = {}, .grad_y = {1, 2, 3, 4}, .gamma = {3}, .beta = {1}};
  const auto got = run_batch_norm_on_cuda(DataType::kFloat32, c, 1, in);
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

// Both devices compute in float from the same stored inputs, and err by 4e-6 of the largest element at most (argued in
// batch_norm_test.cpp; the GPU adds 16 rows in float before it continues in double, which is less). To that comes one
// rounding to the storage type. A ReLU of a value within rounding of zero may go either way: none is that close here.
testing::AssertionResult close(DataType type, const std::vector<float>& got, const std::vector<float>& want) {
  double largest = 0;
  for (const float v : want) largest = std::max(largest, double{std::fabs(v)});
  return test::within(got, test::widen(want),
                      [&](size_t i) { return test::unit_of(type) * std::fabs(want[i]) + 8e-6 * largest; });
}

void expect_close(DataType type, const BatchNormCase& c, const BatchNormResults& got, const BatchNormResults& want) {
  EXPECT_TRUE(close(type, got.y, want.y));
  EXPECT_TRUE(close(type, got.grad_x, want.grad_x));
  EXPECT_TRUE(test::same_bits(got.grad_residual, test::as_stored(type, want.grad_residual)));  // copied, or zero
  EXPECT_TRUE(close(DataType::kFloat32, got.mean, want.mean));
  EXPECT_TRUE(close(DataType::kFloat32, got.inv_std, want.inv_std));
  for (size_t i = 0; i < want.var.size(); ++i) EXPECT_NEAR(got.var[i], want.var[i], 8e-6 * want.var[i]) << i;
  // These two cancel, so their measure is sum |g xhat| and sum |g|, both at most M (|g| <= 1, xhat has norm sqrt(M)).
  const double bound = 2e-6 * static_cast<double>(c.group_count() * c.groups);
  EXPECT_TRUE(test::within(got.grad_gamma, test::widen(want.grad_gamma), [&](size_t) { return bound; }));
  EXPECT_TRUE(test::within(got.grad_beta, test::widen(want.grad_beta), [&](size_t) { return bound; }));
  EXPECT_TRUE(close(DataType::kFloat32, got.running_mean, want.running_mean));
  EXPECT_TRUE(close(DataType::kFloat32, got.running_var, want.running_var));
}

enum class Mode { kPlain, kRelu, kResidualRelu };
using Sizes = std::pair<int64_t, int64_t>;  // of a map
using Parameters = std::tuple<int64_t, Sizes, int, Mode, DataType>;
class BatchNormCudaAgainstCpu : public testing::TestWithParam<Parameters> {};

TEST_P(BatchNormCudaAgainstCpu, Agrees) {
  const auto [channels, sizes, groups, mode, type] = GetParam();
  const BatchNormCase c{.shape = {2, 4, channels, sizes.first, sizes.second},
                        .groups = groups,
                        .relu = mode != Mode::kPlain,
                        .residual = mode == Mode::kResidualRelu};
  const BatchNormInputs in = stored_inputs(type, test::random_batch_norm_inputs(c));
  expect_close(type, c, run_batch_norm_on_cuda(type, c, 1, in), test::run_batch_norm(c, 1, 1, in));
}

std::string case_name(const testing::TestParamInfo<Parameters>& instance) {
  const auto& [channels, sizes, groups, mode, type] = instance.param;
  const char* names[] = {"plain", "relu", "residual_relu"};
  return fmt::format("c{}_{}x{}_{}_{}_{}", channels, sizes.first, sizes.second, groups == 1 ? "joint" : "separate",
                     names[static_cast<int>(mode)], test::name_of(type));
}

// One tile of 32 channels and several; one chunk of 256 rows and several, the last one short.
INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormCudaAgainstCpu,
                         testing::Combine(testing::Values(1, 5, 31, 33, 70),
                                          testing::Values(Sizes{1, 1}, Sizes{7, 5}, Sizes{13, 11}),
                                          testing::Values(1, 2),
                                          testing::Values(Mode::kPlain, Mode::kRelu, Mode::kResidualRelu),
                                          testing::ValuesIn(test::kStorageTypes)),
                         case_name);

// 2,116 rows of 1,024 channels: more rows than the most chunks have with 256 rows each, so chunks are longer.
TEST(BatchNormCuda, AgreesWhereChunksAreLongerThanUsual) {
  const BatchNormCase c{.shape = {1, 4, 1024, 23, 23}, .relu = true};
  const BatchNormInputs in = test::random_batch_norm_inputs(c);
  expect_close(DataType::kFloat32, c, run_batch_norm_on_cuda(DataType::kFloat32, c, 1, in),
               test::run_batch_norm(c, 1, 1, in));
}

class BatchNormCudaBits : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, BatchNormCudaBits, testing::ValuesIn(test::kStorageTypes),
                         [](const auto& instance) { return test::name_of(instance.param); });

TEST_P(BatchNormCudaBits, BitsDoNotDependOnTheShardsOfACall) {
  for (const int groups : {1, 2}) {
    const BatchNormCase c{.shape = {8, 2, 17, 19, 18}, .groups = groups, .relu = true, .residual = true};
    BatchNormInputs in = test::random_batch_norm_inputs(c);
    // Shards of very different size, so that sums in double show their order.
    for (size_t i = 0; i < in.x.size(); ++i) {
      const auto shard = static_cast<int>(i / (in.x.size() / 8));
      in.x[i] = std::ldexp(in.x[i], 4 * (shard * 3 % 8)), in.grad_y[i] = std::ldexp(in.grad_y[i], 4 * (shard * 5 % 8));
    }
    in = stored_inputs(GetParam(), in);
    const auto one = run_batch_norm_on_cuda(GetParam(), c, 1, in);
    for (const int ranks : {2, 4, 8}) {
      SCOPED_TRACE(fmt::format("{} groups, {} ranks", groups, ranks));
      const auto more = run_batch_norm_on_cuda(GetParam(), c, ranks, in);
      EXPECT_TRUE(test::same_bits(one.y, more.y));
      EXPECT_TRUE(test::same_bits(one.grad_x, more.grad_x));
      EXPECT_TRUE(test::same_bits(one.grad_residual, more.grad_residual));
      EXPECT_TRUE(test::same_bits(one.grad_gamma, more.grad_gamma));
      EXPECT_TRUE(test::same_bits(one.grad_beta, more.grad_beta));
      EXPECT_TRUE(test::same_bits(one.running_mean, more.running_mean));
      EXPECT_TRUE(test::same_bits(one.running_var, more.running_var));
      EXPECT_EQ(one.sums, more.sums);
      EXPECT_EQ(one.grad_sums, more.grad_sums);
    }
  }
}

}  // namespace
}  // namespace simclr
