// conv2d: numbers by hand, and the device against plain loops in double over shapes that do not fit blocks.
#include "kernels/conv2d/conv2d.h"

#include "kernels/conv2d/conv2d_ref.h"
#include "tests/kernels/conv2d_support.h"

namespace simclr {
namespace {

using test::case_name;
using test::Inputs;
using test::Results;
using test::run;

TEST(Conv2d, HandNumbersOfThreeByThree) {
  const Conv2dParams p{.shards = 1, .samples = 1, .in_channels = 1, .out_channels = 1, .height = 3, .width = 3};
  // w takes the upper left neighbor once and the right one twice: y[i][j] = x[i-1][j-1] + 2 x[i][j+1].
  const Inputs in{
      .x = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .weight = {1, 0, 0, 0, 0, 2, 0, 0, 0}, .grad_y = {1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const Results got = run(p, 1, in);
  EXPECT_THAT(got.y, testing::ElementsAre(4, 6, 0, 10, 13, 2, 16, 22, 5));
  // grad_x[i][j] = grad_y[i+1][j+1] + 2 grad_y[i][j-1], where those exist
  EXPECT_THAT(got.grad_x, testing::ElementsAre(1, 3, 2, 1, 3, 2, 0, 2, 2));
  // grad_w[u][v] = sum of x over the rows and columns that tap (u, v) meets: 12 = 1+2+4+5, 45 = all of x
  EXPECT_THAT(got.grad_weight, testing::ElementsAre(12, 21, 16, 27, 45, 33, 24, 39, 28));
}

TEST(Conv2d, HandNumbersOfTwoChannels) {
  const Conv2dParams p{.shards = 1,
                       .samples = 1,
                       .in_channels = 2,
                       .out_channels = 2,
                       .height = 1,
                       .width = 1,
                       .kernel = 1,
                       .stride = 1,
                       .padding = 0};
  const Inputs in{.x = {5, 7}, .weight = {1, 2, 3, 4}, .grad_y = {1, 10}};
  const Results got = run(p, 1, in);
  EXPECT_THAT(got.y, testing::ElementsAre(5 + 2 * 7, 3 * 5 + 4 * 7));
  EXPECT_THAT(got.grad_x, testing::ElementsAre(1 + 3 * 10, 2 + 4 * 10));
  EXPECT_THAT(got.grad_weight, testing::ElementsAre(5, 7, 50, 70));
}

// The reference by finite differences of L = sum(grad_y * y), which is linear in x and in w alone: a difference
// quotient is exact but for rounding, about 1e-16 * |L| / h = 1e-13.
TEST(Conv2dRef, GradientsAreDifferenceQuotients) {
  const Conv2dParams p{.shards = 1,
                       .samples = 2,
                       .in_channels = 2,
                       .out_channels = 3,
                       .height = 5,
                       .width = 4,
                       .kernel = 3,
                       .stride = 2,
                       .padding = 1};
  const Inputs in = test::random_inputs(p);
  const auto x = test::widen(in.x), weight = test::widen(in.weight), grad_y = test::widen(in.grad_y);
  const auto loss = [&](const std::vector<double>& at_x, const std::vector<double>& at_w) {
    const auto y = conv2d_ref::forward(p, at_x, at_w);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += grad_y[i] * y[i];
    return sum;
  };
  const double h = 1.0 / 64;
  const auto grad_x = conv2d_ref::backward_data(p, grad_y, weight);
  for (size_t i = 0; i < x.size(); ++i) {
    auto moved = x;
    moved[i] += h;
    EXPECT_NEAR((loss(moved, weight) - loss(x, weight)) / h, grad_x[i], 1e-11) << i;
  }
  const auto grad_weight = conv2d_ref::backward_weights(p, x, grad_y);
  for (size_t i = 0; i < weight.size(); ++i) {
    auto moved = weight;
    moved[i] += h;
    EXPECT_NEAR((loss(x, moved) - loss(x, weight)) / h, grad_weight[i], 1e-11) << i;
  }
}

class Conv2dCase : public testing::TestWithParam<Conv2dParams> {};

// Every output is a dot product of floats, so |error| <= n u sum|a||b| with n the number of its terms; the sum of
// absolute products comes from the reference on absolute values. A wrong term would show: it is sum|a||b| / n big.
void expect_plain_loops(const Conv2dParams& p, const std::string& choice) {
  const Inputs in = test::random_inputs(p);
  const Results got = run(p, 2, in, choice);
  const auto x = test::widen(in.x), weight = test::widen(in.weight), grad_y = test::widen(in.grad_y);
  const auto abs_x = test::absolute(in.x), abs_w = test::absolute(in.weight), abs_g = test::absolute(in.grad_y);
  const auto bounded_by = [](const std::vector<double>& sizes, int64_t terms) {
    return [&sizes, error = test::sum_error(terms)](size_t i) { return error * sizes[i]; };
  };
  const auto y_size = conv2d_ref::forward(p, abs_x, abs_w);
  EXPECT_TRUE(
      test::within(got.y, conv2d_ref::forward(p, x, weight), bounded_by(y_size, p.in_channels * p.kernel * p.kernel)));
  const auto w_size = conv2d_ref::backward_weights(p, abs_x, abs_g);
  EXPECT_TRUE(test::within(got.grad_weight, conv2d_ref::backward_weights(p, x, grad_y),
                           bounded_by(w_size, p.shards * p.samples * p.out_height() * p.out_width())));
  if (p.input_is_images) return;
  const auto x_size = conv2d_ref::backward_data(p, abs_g, abs_w);
  EXPECT_TRUE(test::within(got.grad_x, conv2d_ref::backward_data(p, grad_y, weight),
                           bounded_by(x_size, p.out_channels * p.kernel * p.kernel)));
}

TEST_P(Conv2dCase, AgreesWithPlainLoops) {
  expect_plain_loops(GetParam(), "");
}

TEST_P(Conv2dCase, ByMatrixProductsAgreesWithPlainLoops) {
  expect_plain_loops(GetParam(), GetParam().input_is_images ? "gemm; gemm" : "gemm; gemm; gemm");
}

// Kernel, stride and padding x channels; sizes and samples go round, so that each is met with each kernel.
std::vector<Conv2dParams> feature_map_cases() {
  struct Window {
    int64_t kernel, stride, padding;
  };
  const Window windows[] = {{1, 1, 0}, {1, 2, 0}, {3, 1, 1}, {3, 2, 1}, {3, 1, 0}, {7, 1, 3}, {7, 2, 3}};
  const int64_t channels[][2] = {{1, 16}, {3, 8}, {8, 31}, {16, 33}, {31, 3}, {33, 1}, {48, 16}};
  const int64_t sizes[] = {7, 9, 15, 8}, samples[] = {1, 3, 8};
  std::vector<Conv2dParams> cases;
  for (const auto& w : windows) {
    for (const auto& [in, out] : channels) {
      const size_t i = cases.size();
      cases.push_back({.shards = i % 2 == 0 ? 1 : 2,
                       .samples = samples[w.kernel == 7 ? i % 2 : i % 3],
                       .in_channels = in,
                       .out_channels = out,
                       .height = sizes[i % 4],
                       .width = sizes[(i / 4) % 3],
                       .kernel = w.kernel,
                       .stride = w.stride,
                       .padding = w.padding});
    }
  }
  return cases;
}

std::vector<Conv2dParams> image_cases() {
  std::vector<Conv2dParams> cases;
  for (const int64_t channels : {1, 3})
    for (const int64_t size : {9, 16})
      for (const int64_t out : {16, 31})
        for (const int64_t kernel : {3, 7})
          cases.push_back({.shards = 2,
                           .samples = 3,
                           .in_channels = channels,
                           .out_channels = out,
                           .height = size,
                           .width = size + 3,
                           .kernel = kernel,
                           .stride = kernel == 3 ? 1 : 2,
                           .padding = kernel / 2,
                           .input_is_images = true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(FeatureMaps, Conv2dCase, testing::ValuesIn(feature_map_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Images, Conv2dCase, testing::ValuesIn(image_cases()), case_name);

TEST(Conv2d, CountsItsWork) {
  // 2 * 6 samples * (5*3*9 weights) * 6*6 places
  const Conv2dParams p{.shards = 2, .samples = 3, .in_channels = 3, .out_channels = 5, .height = 6, .width = 6};
  EXPECT_EQ(p.forward_flops(), 2.0 * 6 * 135 * 36);
  EXPECT_FALSE(make_conv2d_plan(CpuExec{}, p)->describe().empty());
}

// The library's own plain loops ("ref") are hundreds of times slower: no shape of a narrow or wide ResNet may get them.
TEST(Conv2d, NoShapeOfAResNetGetsTheLibrarysPlainLoops) {
  const CpuExec cpu{.threads = 1};
  for (const auto& [width, side] : {std::pair<int64_t, int64_t>{4, 16},
                                    {8, 16},
                                    {10, 16},
                                    {16, 16},
                                    {24, 16},
                                    {31, 16},
                                    {64, 16},
                                    {64, 4},
                                    {64, 3},
                                    {32, 2},
                                    {64, 2},
                                    {64, 1}}) {
    for (const auto& [in, out, kernel, stride, images] :
         {std::tuple<int64_t, int64_t, int64_t, int64_t, bool>{3, width, 3, 1, true},
          {3, width, 7, 2, true},
          {width, width, 3, 1, false},
          {width, 2 * width, 3, 2, false},
          {width, 2 * width, 1, 2, false},
          {4 * width, 8 * width, 3, 2, false}}) {
      const auto plan = make_conv2d_plan(Exec(cpu), {.shards = 1,
                                                     .samples = 4,
                                                     .in_channels = in,
                                                     .out_channels = out,
                                                     .height = side,
                                                     .width = side,
                                                     .kernel = kernel,
                                                     .stride = stride,
                                                     .padding = kernel / 2,
                                                     .input_is_images = images});
      EXPECT_EQ(plan->describe().find("ref"), std::string::npos)
          << in << " -> " << out << " at " << side << ", kernel " << kernel << ", stride " << stride << ": "
          << plan->describe();
    }
  }
}

}  // namespace
}  // namespace simclr
