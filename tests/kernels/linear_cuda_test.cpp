// linear on CUDA: numbers by hand, the CPU op on awkward sizes in each precision, zeroed padding, NaN, and the promise
// on bits.
#include "kernels/linear/linear.h"

#include <string>

#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;
using test::DeviceArray;
using testing::ElementsAre;

struct LinearCase {
  int64_t shards, samples, in, out;
  bool bias = true;
  int64_t rows() const { return shards * samples; }
};

struct LinearInputs {
  std::vector<float> x, weight, bias, grad_y;  // [rows, in], [out, in], [out], [rows, out]
};
LinearInputs random_linear_inputs(const LinearCase& c) {
  return {test::random_values(c.rows() * c.in, 1), test::random_values(c.out * c.in, 2), test::random_values(c.out, 3),
          test::random_values(c.rows() * c.out, 4)};
}

struct LinearResults {
  std::vector<float> y, grad_x, grad_weight, grad_bias;
};

LinearResults run_on_cpu(const LinearCase& c, const LinearInputs& in) {
  const test::PoisonedContext context(1, linear_scratch(c.shards, c.in, c.out));
  const Exec& exec = context.exec();
  LinearResults r{.y = std::vector<float>(in.grad_y.size()),
                  .grad_x = std::vector<float>(in.x.size()),
                  .grad_weight = std::vector<float>(in.weight.size()),
                  .grad_bias = std::vector<float>(in.bias.size())};
  const ConstMatrix x{in.x.data(), c.rows(), c.in, c.in}, grad_y{in.grad_y.data(), c.rows(), c.out, c.out};
  linear_forward(exec, c.shards, x, in.weight.data(), c.bias ? in.bias.data() : nullptr,
                 {r.y.data(), c.rows(), c.out, c.out});
  linear_backward_data(exec, c.shards, grad_y, in.weight.data(), {r.grad_x.data(), c.rows(), c.in, c.in});
  linear_backward_weights(exec, c.shards, x, grad_y, r.grad_weight.data(), c.bias ? r.grad_bias.data() : nullptr);
  return r;
}

DataType stored_as(Precision precision) {
  return precision == Precision::kBf16 ? DataType::kBfloat16 : DataType::kFloat32;
}

// Inputs whose padding is NaN (it must not be read), outputs and scratch full of NaN; rows of padded_cols.
LinearResults run_on_cuda(Precision precision, const LinearCase& c, const LinearInputs& in) {
  const DataType type = stored_as(precision);
  const test::CudaRun run(precision, linear_scratch(c.shards, c.in, c.out));
  const Exec& exec = run.exec();
  const int64_t in_stride = padded_cols(c.in), out_stride = padded_cols(c.out);
  const CudaMatrix x(type, c.rows(), c.in, in_stride, in.x, test::kNaN);
  const CudaMatrix grad_y(type, c.rows(), c.out, out_stride, in.grad_y, test::kNaN);
  const CudaMatrix y(type, c.rows(), c.out, out_stride), grad_x(type, c.rows(), c.in, in_stride);
  const DeviceArray<float> weight(in.weight), bias(in.bias), grad_weight(in.weight.size()), grad_bias(in.bias.size());
  linear_forward(exec, c.shards, x.view(), weight.data(), c.bias ? bias.data() : nullptr, y.view());
  linear_backward_data(exec, c.shards, grad_y.view(), weight.data(), grad_x.view());
  linear_backward_weights(exec, c.shards, x.view(), grad_y.view(), grad_weight.data(),
                          c.bias ? grad_bias.data() : nullptr);
  EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
  return {y.plain(), grad_x.plain(), grad_weight.download(), grad_bias.download()};
}

class LinearCuda : public testing::TestWithParam<Precision> {
 protected:
  const Precision precision_ = GetParam();
  const DataType type_ = stored_as(precision_);
};
std::string precision_name(const testing::TestParamInfo<Precision>& instance) {
  const char* names[] = {"fp32", "tf32", "bf16"};
  return names[static_cast<int>(instance.param)];
}
INSTANTIATE_TEST_SUITE_P(Precisions, LinearCuda, testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16),
                         precision_name);

TEST_P(LinearCuda, HandNumbers) {
  // W = [1 2; 3 4; 5 6], b = (10, 20, 30), x = (1, 2) and (0, -1)
  const LinearCase c{.shards = 1, .samples = 2, .in = 2, .out = 3};
  const LinearInputs in{
      .x = {1, 2, 0, -1}, .weight = {1, 2, 3, 4, 5, 6}, .bias = {10, 20, 30}, .grad_y = {1, 0, -1, 2, 1, 0}};
  const auto got = run_on_cuda(precision_, c, in);
  EXPECT_THAT(got.y, ElementsAre(15, 31, 47, 8, 16, 24));
  EXPECT_THAT(got.grad_x, ElementsAre(1 - 5, 2 - 6, 2 + 3, 4 + 4));
  EXPECT_THAT(got.grad_weight, ElementsAre(1, 2 - 2, 0, 0 - 1, -1, -2));  // column o: sum of grad_y[i][o] * x[i]
  EXPECT_THAT(got.grad_bias, ElementsAre(3, 1, -1));
  LinearCase without = c;
  without.bias = false;
  EXPECT_THAT(run_on_cuda(precision_, without, in).y, ElementsAre(5, 11, 17, -2, -4, -6));
}

// A dot product of n terms in float errs by n u sum|a||b| on either device; sum|a||b| is what the CPU op makes of the
// absolute values. bfloat16: operands are given rounded, their products are exact in float; y is rounded as a product
// and once more with the bias. tf32: each operand is rounded to 11 bits, which is 2^-11 of each product, twice.
TEST_P(LinearCuda, AgreesWithTheCpu) {
  const LinearCase cases[] = {{1, 1, 1, 1},   {2, 1, 31, 33}, {1, 3, 33, 31, false}, {2, 8, 48, 16, false},
                              {4, 5, 7, 129}, {1, 2, 515, 3}, {2, 37, 127, 64}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} shards of {}, {} to {}", c.shards, c.samples, c.in, c.out));
    LinearInputs in = random_linear_inputs(c), given = in, sizes;
    for (auto* values : {&in.x, &in.weight, &in.grad_y}) *values = test::as_stored(type_, *values);
    const auto absolute = [](std::vector<float> values) {
      for (float& v : values) v = std::fabs(v);
      return values;
    };
    sizes = {absolute(in.x), absolute(in.weight), absolute(in.bias), absolute(in.grad_y)};
    const auto got = run_on_cuda(precision_, c, given);  // the op rounds the weights
    const auto want = run_on_cpu(c, in), size = run_on_cpu(c, sizes);
    const double operands = precision_ == Precision::kTf32 ? 0x1p-10 * 1.01 : 0;
    const double stored = precision_ == Precision::kBf16 ? test::unit_of(type_) : 0;
    const auto agrees = [&](const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& s,
                            int64_t terms, double roundings) {
      return test::within(a, test::widen(b), [&](size_t i) {
        return (2 * test::sum_error(terms + 1) + operands + roundings * stored) * s[i];
      });
    };
    EXPECT_TRUE(agrees(got.y, want.y, size.y, c.in, 2));
    EXPECT_TRUE(agrees(got.grad_x, want.grad_x, size.grad_x, c.out, 1));
    EXPECT_TRUE(agrees(got.grad_weight, want.grad_weight, size.grad_weight, c.rows(), 0));
    if (c.bias) {
      EXPECT_TRUE(agrees(got.grad_bias, want.grad_bias, size.grad_bias, c.rows(), 0));
    }
  }
}

TEST_P(LinearCuda, BitsDoNotDependOnTheShardsOfACall) {
  for (const LinearCase& c : {LinearCase{8, 4, 33, 17}, LinearCase{8, 1, 64, 128}, LinearCase{8, 6, 128, 100}}) {
    const LinearInputs in = random_linear_inputs(c);
    const auto one = run_on_cuda(precision_, c, in);
    const auto piece = [](const std::vector<float>& v, int64_t s) {
      const auto size = static_cast<ptrdiff_t>(v.size() / 8);
      return std::vector<float>(v.begin() + s * size, v.begin() + (s + 1) * size);
    };
    std::vector<std::vector<float>> g;  // gradients of weight and bias, one after the other, of each shard
    for (int64_t s = 0; s < 8; ++s) {
      const auto part = run_on_cuda(precision_, {1, c.samples, c.in, c.out},
                                    {piece(in.x, s), in.weight, in.bias, piece(in.grad_y, s)});
      EXPECT_TRUE(test::same_bits(part.y, piece(one.y, s))) << s;
      EXPECT_TRUE(test::same_bits(part.grad_x, piece(one.grad_x, s))) << s;
      g.push_back(part.grad_weight);
      g.back().insert(g.back().end(), part.grad_bias.begin(), part.grad_bias.end());
    }
    std::vector<float> whole = one.grad_weight, tree, in_sequence;
    whole.insert(whole.end(), one.grad_bias.begin(), one.grad_bias.end());
    for (size_t i = 0; i < whole.size(); ++i) {
      tree.push_back(((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + ((g[4][i] + g[5][i]) + (g[6][i] + g[7][i])));
      in_sequence.push_back(0.0F);
      for (const auto& part : g) in_sequence.back() += part[i];
    }
    EXPECT_TRUE(test::same_bits(whole, tree));
    // Few sums of three products of bfloat16 round at all.
    if (precision_ != Precision::kBf16) {
      EXPECT_FALSE(test::same_bits(in_sequence, tree)) << "the inputs cannot distinguish the orders";
    }
  }
}

TEST_P(LinearCuda, NanStaysInItsRowAndReachesTheWeights) {
  const LinearCase c{2, 2, 5, 3};
  LinearInputs in = random_linear_inputs(c);
  in.x[7] = test::kNaN;  // row 1, column 2
  const auto got = run_on_cuda(precision_, c, in);
  for (size_t i = 0; i < got.y.size(); ++i) EXPECT_EQ(std::isnan(got.y[i]), i / 3 == 1) << i;
  for (size_t i = 0; i < got.grad_weight.size(); ++i) EXPECT_EQ(std::isnan(got.grad_weight[i]), i % 5 == 2) << i;
}

// Rows without padding, and rows wider than the network's.
TEST(LinearCuda, TakesAnyStride) {
  const LinearCase c{2, 3, 5, 7};
  const LinearInputs in = random_linear_inputs(c);
  const auto want = run_on_cuda(Precision::kFp32, c, in);
  const DeviceArray<float> weight(in.weight), bias(in.bias);
  const auto fp32 = DataType::kFloat32;
  for (const int64_t extra : {0, 29}) {
    const test::CudaRun run(Precision::kFp32, linear_scratch(c.shards, c.in, c.out));
    const CudaMatrix x(fp32, 6, 5, 5 + extra, in.x, test::kNaN), grad_y(fp32, 6, 7, 7 + extra, in.grad_y, test::kNaN);
    const CudaMatrix y(fp32, 6, 7, 7 + extra), grad_x(fp32, 6, 5, 5 + extra);
    linear_forward(run.exec(), 2, x.view(), weight.data(), bias.data(), y.view());
    linear_backward_data(run.exec(), 2, grad_y.view(), weight.data(), grad_x.view());
    EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
    EXPECT_LT(test::relative_error(y.plain(), test::widen(want.y)), 1e-6);
    EXPECT_LT(test::relative_error(grad_x.plain(), test::widen(want.grad_x)), 1e-6);
  }
}

TEST(LinearCuda, RefusesWrongUse) {
  const test::CudaRun run(Precision::kFp32, linear_scratch(3, 3, 5)), small(Precision::kFp32, {});
  const auto fp32 = DataType::kFloat32, bf16 = DataType::kBfloat16;
  const CudaMatrix x(fp32, 6, 3, 16), y(fp32, 6, 5, 16), other(bf16, 6, 5, 16);
  const DeviceArray<float> w(15), grad(15);
  EXPECT_THAT([&] { linear_forward(run.exec(), 2, x.view(), w.data(), nullptr, other.view()); }, test::fires("linear"));
  EXPECT_THAT([&] { linear_backward_weights(run.exec(), 3, x.view(), y.view(), grad.data(), nullptr); },
              test::fires("tree over 3 parts"));
  EXPECT_THAT([&] { linear_backward_weights(small.exec(), 2, x.view(), y.view(), grad.data(), nullptr); },
              test::fires("bytes of workspace"));
}

// A grid has at most 65,535 blocks in y. What is said of a refused launch is what one needs to find it.
TEST(LinearCuda, NamesALaunchThatTheDeviceRefuses) {
  const LinearCase c{.shards = 1 << 16, .samples = 1, .in = 1, .out = 1};
  const test::CudaRun run(Precision::kFp32, linear_scratch(c.shards, c.in, c.out));
  const CudaMatrix x(DataType::kFloat32, c.rows(), 1, 16), grad_y(DataType::kFloat32, c.rows(), 1, 16);
  const DeviceArray<float> weight(1), bias(1);
  EXPECT_THAT(
      [&] { linear_backward_weights(run.exec(), c.shards, x.view(), grad_y.view(), weight.data(), bias.data()); },
      test::refuses(ExitCode::kDevice, "linear_column_sums with 1x65536x1 blocks of 256 threads"));
}

}  // namespace
}  // namespace simclr
