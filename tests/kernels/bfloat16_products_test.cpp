// Products of bfloat16 on the CPU, convolution and linear, against plain loops in double on the rounded operands: sums
// of n terms err by n u sum|a||b| as in float32, u = 2^-24; what is stored as bfloat16 is then rounded once, by 2^-8 of
// itself. Weight gradients are float32 and not rounded.
#include "kernels/conv2d/conv2d_ref.h"
#include "kernels/linear/linear.h"
#include "tests/kernels/bfloat16_support.h"
#include "tests/kernels/conv2d_support.h"

namespace simclr {
namespace {

using test::Bfloat16Maps;
using test::Bfloat16Matrix;
using test::rounded;

constexpr double kStored = 0x1p-8;  // unit roundoff of bfloat16

// sizes: sum|a||b| of each element; wanted: the exact value.
auto bound(const std::vector<double>& sizes, const std::vector<double>& wanted, int64_t terms, double stored) {
  return [&sizes, &wanted, error = test::sum_error(terms), stored](size_t i) {
    return error * sizes[i] * (1 + stored) + stored * std::fabs(wanted[i]);
  };
}

// The halves of eight shards in memory order.
std::vector<float> piece(const std::vector<float>& v, int64_t s) {
  const auto size = static_cast<ptrdiff_t>(v.size() / 8);
  return {v.begin() + s * size, v.begin() + (s + 1) * size};
}

float tree_sum(const std::vector<std::vector<float>>& g, size_t i) {
  return ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + ((g[4][i] + g[5][i]) + (g[6][i] + g[7][i]));
}

std::vector<Conv2dParams> convolutions() {
  std::vector<Conv2dParams> cases;
  struct Window {
    int64_t kernel, stride, padding;
  };
  const int64_t channels[][2] = {{1, 16}, {3, 8}, {16, 33}, {33, 1}, {64, 32}, {160, 48}};
  for (const Window& w : {Window{1, 1, 0}, Window{1, 2, 0}, Window{3, 1, 1}, Window{3, 2, 1}, Window{7, 2, 3}}) {
    for (const auto& [in, out] : channels) {
      const auto i = static_cast<int64_t>(cases.size());
      cases.push_back({.shards = 1 + i % 2,
                       .samples = 1 + i % 3,
                       .in_channels = in,
                       .out_channels = out,
                       .height = 7 + i % 4,
                       .width = 7 + i % 3,
                       .kernel = w.kernel,
                       .stride = w.stride,
                       .padding = w.padding});
    }
  }
  for (const int64_t kernel : {3, 7})
    for (const int64_t out : {16, 31})
      cases.push_back({.shards = 2,
                       .samples = 3,
                       .in_channels = 3,
                       .out_channels = out,
                       .height = 9,
                       .width = 16,
                       .kernel = kernel,
                       .stride = kernel == 3 ? 1 : 2,
                       .padding = kernel / 2,
                       .input_is_images = true});
  return cases;
}

class Bfloat16Conv2d : public testing::TestWithParam<Conv2dParams> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Bfloat16Conv2d, testing::ValuesIn(convolutions()), test::case_name);

TEST_P(Bfloat16Conv2d, AgreesWithPlainLoops) {
  const Conv2dParams& p = GetParam();
  const test::Inputs given = test::random_inputs(p);  // the op rounds weights and images
  const auto got = test::run<Bfloat16Maps>(p, 2, given);
  const test::Inputs in{rounded(given.x), rounded(given.weight), rounded(given.grad_y)};
  const auto x = test::widen(in.x), weight = test::widen(in.weight), grad_y = test::widen(in.grad_y);
  const auto abs_x = test::absolute(in.x), abs_w = test::absolute(in.weight), abs_g = test::absolute(in.grad_y);
  const auto y = conv2d_ref::forward(p, x, weight), y_size = conv2d_ref::forward(p, abs_x, abs_w);
  EXPECT_TRUE(test::within(got.y, y, bound(y_size, y, p.in_channels * p.kernel * p.kernel, kStored)));
  const auto w = conv2d_ref::backward_weights(p, x, grad_y), w_size = conv2d_ref::backward_weights(p, abs_x, abs_g);
  const int64_t places = p.shards * p.samples * p.out_height() * p.out_width();
  EXPECT_TRUE(test::within(got.grad_weight, w, bound(w_size, w, places, 0)));
  if (p.input_is_images) return;
  const auto g = conv2d_ref::backward_data(p, grad_y, weight), g_size = conv2d_ref::backward_data(p, abs_g, abs_w);
  EXPECT_TRUE(test::within(got.grad_x, g, bound(g_size, g, p.out_channels * p.kernel * p.kernel, kStored)));
}

class Bfloat16Conv2dBits : public Bfloat16Conv2d {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, Bfloat16Conv2dBits,
    testing::Values(
        Conv2dParams{.shards = 8, .samples = 3, .in_channels = 16, .out_channels = 33, .height = 9, .width = 8},
        Conv2dParams{.shards = 8, .samples = 8, .in_channels = 64, .out_channels = 64, .height = 8, .width = 8},
        Conv2dParams{.shards = 8,
                     .samples = 2,
                     .in_channels = 64,
                     .out_channels = 128,
                     .height = 8,
                     .width = 8,
                     .kernel = 1,
                     .stride = 2,
                     .padding = 0},
        Conv2dParams{.shards = 8,
                     .samples = 4,
                     .in_channels = 3,
                     .out_channels = 32,
                     .height = 12,
                     .width = 12,
                     .input_is_images = true}),
    test::case_name);

TEST_P(Bfloat16Conv2dBits, DependNeitherOnThreadsNorOnTheCutIntoRanks) {
  const Conv2dParams& p = GetParam();
  const test::Inputs in = test::random_inputs(p);
  const auto whole = test::run<Bfloat16Maps>(p, 1, in), more = test::run<Bfloat16Maps>(p, 3, in);
  EXPECT_TRUE(test::same_bits(whole.y, more.y) && test::same_bits(whole.grad_x, more.grad_x) &&
              test::same_bits(whole.grad_weight, more.grad_weight));
  Conv2dParams single = p;
  single.shards = 1;
  std::vector<std::vector<float>> g;  // weight gradients of the shards
  for (int64_t s = 0; s < 8; ++s) {
    const auto part = test::run<Bfloat16Maps>(single, 1, {piece(in.x, s), in.weight, piece(in.grad_y, s)});
    EXPECT_TRUE(test::same_bits(part.y, piece(whole.y, s))) << "shard " << s;
    EXPECT_TRUE(test::same_bits(part.grad_x, piece(whole.grad_x, s))) << "shard " << s;
    g.push_back(part.grad_weight);
  }
  for (size_t i = 0; i < whole.grad_weight.size(); ++i) ASSERT_EQ(whole.grad_weight[i], tree_sum(g, i)) << i;
}

TEST_F(Bfloat16Conv2dBits, RefusesFloatsForFeatureMaps) {
  const Conv2dParams p{.shards = 1, .samples = 1, .in_channels = 16, .out_channels = 16, .height = 4, .width = 4};
  const Exec exec = CpuExec{.precision = Precision::kBf16};
  const auto plan = make_conv2d_plan(exec, p);
  const test::FeatureMaps x(test::input_shape(p)), y(test::output_shape(p));
  const std::vector<float> weight(p.weight_elements());
  EXPECT_THAT([&] { conv2d_forward(exec, *plan, x.view(), weight.data(), y.view()); },
              test::fires("maps of 4 and 4 bytes an element, the device stores 2 and 2"));
}

TEST_F(Bfloat16Conv2dBits, AreDirect) {
  Conv2dParams p{.shards = 1, .samples = 64, .in_channels = 64, .out_channels = 64, .height = 8, .width = 8};
  const Exec exec = CpuExec{.precision = Precision::kBf16};
  EXPECT_EQ(make_conv2d_plan(exec, p)->choice(), "direct; direct; direct");
  p.algorithm = ConvolutionAlgorithm::kWinograd;
  EXPECT_THAT([&] { make_conv2d_plan(exec, p); },
              testing::Throws<Error>(testing::AllOf(
                  testing::Property(&Error::code, ExitCode::kDevice),
                  testing::Property(&Error::what, testing::HasSubstr("no Winograd convolution in bf16")))));
}

struct LinearCase {
  int64_t shards, samples, in, out;
  bool bias = true;
  int64_t rows() const { return shards * samples; }
};

struct LinearValues {
  std::vector<float> x, weight, bias, grad_y;
};
LinearValues linear_values(const LinearCase& c) {
  return {test::random_values(c.rows() * c.in, 1), test::random_values(c.out * c.in, 2), test::random_values(c.out, 3),
          test::random_values(c.rows() * c.out, 4)};
}

struct LinearResults {
  std::vector<float> y, grad_x, grad_weight, grad_bias;
};
LinearResults run(const LinearCase& c, int threads, const LinearValues& in) {
  const test::PoisonedContext context(threads, linear_scratch(c.shards, c.in, c.out), Precision::kBf16);
  const Bfloat16Matrix x(c.rows(), c.in, in.x), grad_y(c.rows(), c.out, in.grad_y), y(c.rows(), c.out),
      grad_x(c.rows(), c.in);
  LinearResults r{.y = {},
                  .grad_x = {},
                  .grad_weight = std::vector<float>(in.weight.size(), test::kNaN),
                  .grad_bias = std::vector<float>(in.bias.size(), test::kNaN)};
  linear_forward(context.exec(), c.shards, x.view(), in.weight.data(), c.bias ? in.bias.data() : nullptr, y.view());
  linear_backward_data(context.exec(), c.shards, grad_y.view(), in.weight.data(), grad_x.view());
  linear_backward_weights(context.exec(), c.shards, x.view(), grad_y.view(), r.grad_weight.data(), r.grad_bias.data());
  EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
  r.y = y.plain(), r.grad_x = grad_x.plain();
  return r;
}

class Bfloat16Linear : public test::Bfloat16Test {};

TEST_F(Bfloat16Linear, HandNumbers) {
  // W = [1 2; 3 4; 5 6], b = (10, 20, 30), x = (1, 2) and (0, -1): small integers are exact
  const LinearCase c{.shards = 1, .samples = 2, .in = 2, .out = 3};
  const LinearValues in{
      .x = {1, 2, 0, -1}, .weight = {1, 2, 3, 4, 5, 6}, .bias = {10, 20, 30}, .grad_y = {1, 0, -1, 2, 1, 0}};
  const auto got = run(c, 1, in);
  EXPECT_THAT(got.y, testing::ElementsAre(15, 31, 47, 8, 16, 24));
  EXPECT_THAT(got.grad_x, testing::ElementsAre(1 - 5, 2 - 6, 2 + 3, 4 + 4));
  EXPECT_THAT(got.grad_weight, testing::ElementsAre(1, 2 - 2, 0, 0 - 1, -1, -2));
  EXPECT_THAT(got.grad_bias, testing::ElementsAre(3, 1, -1));
}

TEST_F(Bfloat16Linear, AgreesWithPlainLoops) {
  const LinearCase cases[] = {{1, 1, 1, 1},   {2, 1, 31, 33}, {1, 3, 33, 31, false}, {2, 8, 48, 16, false},
                              {4, 5, 7, 129}, {1, 2, 515, 3}, {2, 64, 512, 128}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} shards of {}, {} to {}", c.shards, c.samples, c.in, c.out));
    const LinearValues in = linear_values(c);
    const auto got = run(c, 2, in);
    const auto x = rounded(in.x), w = rounded(in.weight), g = rounded(in.grad_y);
    // sum over k of a(i, k) * b(k, j), and of the absolute values
    const auto expect_product = [](const std::vector<float>& c_got, int64_t rows, int64_t cols, int64_t terms, auto a,
                                   auto b, const float* bias, double stored) {
      std::vector<double> want, size;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          double sum = bias ? bias[j] : 0, abs = std::fabs(sum);
          for (int64_t k = 0; k < terms; ++k)
            sum += double{a(i, k)} * b(k, j), abs += std::fabs(double{a(i, k)} * b(k, j));
          want.push_back(sum), size.push_back(abs);
        }
      }
      EXPECT_TRUE(test::within(c_got, want, bound(size, want, terms + 1, stored)));
    };
    const auto at = [](const std::vector<float>& m, int64_t cols) {
      return [&m, cols](int64_t i, int64_t j) { return m[i * cols + j]; };
    };
    const auto turned = [](auto f) { return [f](int64_t i, int64_t j) { return f(j, i); }; };
    const auto at_x = at(x, c.in), at_w = at(w, c.in), at_g = at(g, c.out);
    expect_product(got.y, c.rows(), c.out, c.in, at_x, turned(at_w), c.bias ? in.bias.data() : nullptr, kStored);
    expect_product(got.grad_x, c.rows(), c.in, c.out, at_g, at_w, nullptr, kStored);
    expect_product(got.grad_weight, c.out, c.in, c.rows(), turned(at_g), at_x, nullptr, 0);
    expect_product(
        got.grad_bias, c.out, 1, c.rows(), turned(at_g), [](int64_t, int64_t) { return 1.0F; }, nullptr, 0);
  }
}

TEST_F(Bfloat16Linear, BitsDependNeitherOnThreadsNorOnTheCutIntoRanks) {
  for (const LinearCase& c : {LinearCase{8, 4, 33, 17}, LinearCase{8, 1, 64, 128}, LinearCase{8, 6, 128, 100}}) {
    const LinearValues in = linear_values(c);
    const auto whole = run(c, 1, in), more = run(c, 3, in);
    EXPECT_TRUE(test::same_bits(whole.y, more.y) && test::same_bits(whole.grad_x, more.grad_x) &&
                test::same_bits(whole.grad_weight, more.grad_weight) &&
                test::same_bits(whole.grad_bias, more.grad_bias));
    std::vector<std::vector<float>> g, b;
    for (int64_t s = 0; s < 8; ++s) {
      const auto part = run({1, c.samples, c.in, c.out}, 1, {piece(in.x, s), in.weight, in.bias, piece(in.grad_y, s)});
      EXPECT_TRUE(test::same_bits(part.y, piece(whole.y, s))) << s;
      EXPECT_TRUE(test::same_bits(part.grad_x, piece(whole.grad_x, s))) << s;
      g.push_back(part.grad_weight), b.push_back(part.grad_bias);
    }
    for (size_t i = 0; i < whole.grad_weight.size(); ++i) ASSERT_EQ(whole.grad_weight[i], tree_sum(g, i)) << i;
    for (size_t i = 0; i < whole.grad_bias.size(); ++i) ASSERT_EQ(whole.grad_bias[i], tree_sum(b, i)) << i;
  }
}

}  // namespace
}  // namespace simclr
