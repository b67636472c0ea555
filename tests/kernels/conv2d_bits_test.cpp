// conv2d: the promise on bits (neither threads nor the cut into ranks changes a result), and what it refuses.
#include "kernels/conv2d/conv2d.h"
#include "tests/kernels/conv2d_support.h"

namespace simclr {
namespace {

using test::case_name;
using test::FeatureMaps;
using test::Inputs;
using test::PoisonedContext;
using test::Results;
using test::run;
using test::Shape;

class Conv2dBits : public testing::TestWithParam<Conv2dParams> {};

TEST_P(Conv2dBits, DoNotDependOnThreads) {
  const Inputs in = test::random_inputs(GetParam());
  const Results one = run(GetParam(), 1, in);
  for (const int threads : {2, 3}) {
    const Results more = run(GetParam(), threads, in);
    EXPECT_TRUE(test::same_bits(one.y, more.y)) << threads << " threads";
    EXPECT_TRUE(test::same_bits(one.grad_x, more.grad_x)) << threads << " threads";
    EXPECT_TRUE(test::same_bits(one.grad_weight, more.grad_weight)) << threads << " threads";
  }
}

// Eight shards in one call against eight calls of one shard, as eight ranks would make them.
TEST_P(Conv2dBits, DoNotDependOnTheCutIntoRanks) {
  const Conv2dParams& p = GetParam();
  const Inputs in = test::random_inputs(p);
  const Results whole = run(p, 2, in);
  Conv2dParams single = p;
  single.shards = 1;
  const auto piece = [](const std::vector<float>& v, int64_t s) {
    const auto size = static_cast<ptrdiff_t>(v.size() / 8);
    return std::vector<float>(v.begin() + s * size, v.begin() + (s + 1) * size);
  };
  std::vector<std::vector<float>> g;  // weight gradients of the shards
  for (int64_t s = 0; s < 8; ++s) {
    const Results part = run(single, 1, {piece(in.x, s), in.weight, piece(in.grad_y, s)});
    EXPECT_TRUE(test::same_bits(part.y, piece(whole.y, s))) << "shard " << s;
    EXPECT_TRUE(test::same_bits(part.grad_x, piece(whole.grad_x, s))) << "shard " << s;
    g.push_back(part.grad_weight);
  }
  std::vector<float> tree, in_sequence;
  for (size_t i = 0; i < g[0].size(); ++i) {
    tree.push_back(((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + ((g[4][i] + g[5][i]) + (g[6][i] + g[7][i])));
    float sum = 0;
    for (const auto& part : g) sum += part[i];
    in_sequence.push_back(sum);
  }
  EXPECT_TRUE(test::same_bits(whole.grad_weight, tree));
  EXPECT_FALSE(test::same_bits(tree, in_sequence)) << "the inputs cannot distinguish the orders";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Conv2dBits,
    testing::Values(
        Conv2dParams{.shards = 8, .samples = 4, .in_channels = 33, .out_channels = 16, .height = 9, .width = 7},
        Conv2dParams{.shards = 8,
                     .samples = 3,
                     .in_channels = 16,
                     .out_channels = 48,
                     .height = 8,
                     .width = 8,
                     .kernel = 1,
                     .stride = 2,
                     .padding = 0},
        Conv2dParams{.shards = 8,
                     .samples = 3,
                     .in_channels = 5,
                     .out_channels = 20,
                     .height = 7,
                     .width = 7,
                     .kernel = 1,
                     .stride = 1,
                     .padding = 0},
        Conv2dParams{
            .shards = 8, .samples = 2, .in_channels = 64, .out_channels = 128, .height = 4, .width = 4, .stride = 2},
        Conv2dParams{.shards = 8,
                     .samples = 4,
                     .in_channels = 3,
                     .out_channels = 16,
                     .height = 15,
                     .width = 15,
                     .input_is_images = true}),
    case_name);

TEST(Conv2d, NanInOneSampleStaysThere) {
  const Conv2dParams p{.shards = 2, .samples = 2, .in_channels = 3, .out_channels = 16, .height = 4, .width = 4};
  Inputs in = test::random_inputs(p);
  in.x[0] = test::kNaN;  // sample 0, the upper left place, which the 2x2 outputs around it see
  const Results got = run(p, 2, in);
  EXPECT_TRUE(std::isnan(got.y[0]));
  EXPECT_TRUE(std::isfinite(got.y[2]));
  const size_t sample = got.y.size() / 4;
  for (size_t i = sample; i < got.y.size(); ++i) ASSERT_TRUE(std::isfinite(got.y[i])) << i;
}

TEST(Conv2d, RefusesWrongShapes) {
  const Conv2dParams p{.shards = 2, .samples = 2, .in_channels = 3, .out_channels = 5, .height = 6, .width = 6};
  const Exec any = CpuExec{};
  const auto plan = make_conv2d_plan(any, p);
  const PoisonedContext context(1, plan->scratch());
  const Exec& exec = context.exec();
  const auto weight = test::random_values(p.weight_elements(), 2);
  std::vector<float> grad_weight(weight.size());
  FeatureMaps x(test::input_shape(p)), y(test::output_shape(p));
  // Each of the five sizes off by one, in x and in y alone.
  for (int64_t Shape::*size : {&Shape::shards, &Shape::samples, &Shape::channels, &Shape::height, &Shape::width}) {
    Shape x_shape = test::input_shape(p), y_shape = test::output_shape(p);
    x_shape.*size -= 1, y_shape.*size -= 1;
    FeatureMaps bad_x(x_shape), bad_y(y_shape);
    const float* w = weight.data();
    float* grad_w = grad_weight.data();
    EXPECT_THAT([&] { conv2d_forward(exec, *plan, bad_x.view(), w, y.view()); }, test::fires("x is ["));
    EXPECT_THAT([&] { conv2d_forward(exec, *plan, x.view(), w, bad_y.view()); }, test::fires("y is ["));
    EXPECT_THAT([&] { conv2d_backward_data(exec, *plan, bad_y.view(), w, x.view()); }, test::fires("y is ["));
    EXPECT_THAT([&] { conv2d_backward_data(exec, *plan, y.view(), w, bad_x.view()); }, test::fires("x is ["));
    EXPECT_THAT([&] { conv2d_backward_weights(exec, *plan, bad_x.view(), y.view(), grad_w); }, test::fires("x is ["));
    EXPECT_THAT([&] { conv2d_backward_weights(exec, *plan, x.view(), bad_y.view(), grad_w); }, test::fires("y is ["));
  }
  const ConstImages images{x.all().data(), 2, 2, 3, 6, 6};
  EXPECT_THAT([&] { conv2d_forward(exec, *plan, images, weight.data(), y.view()); },
              test::fires("made for feature maps"));
}

TEST(Conv2d, RefusesWhatNoPlanCanBeMadeFor) {
  const Exec exec = CpuExec{};
  EXPECT_THAT([&] { make_conv2d_plan(exec, {.shards = 1, .samples = 0}); }, test::fires("empty shape"));
  EXPECT_THAT(
      [&] {
        make_conv2d_plan(exec, {.shards = 1,
                                .samples = 1,
                                .in_channels = 1,
                                .out_channels = 1,
                                .height = 4,
                                .width = 9,
                                .kernel = 7,
                                .padding = 1});
      },
      test::fires("kernel 7 is larger than the padded input 4x9"));
}

TEST(Conv2d, RefusesTooLittleScratch) {
  const Conv2dParams p{.shards = 1, .samples = 1, .in_channels = 3, .out_channels = 5, .height = 6, .width = 6};
  const Exec exec = CpuExec{};  // has none
  const auto plan = make_conv2d_plan(exec, p);
  FeatureMaps x(test::input_shape(p)), y(test::output_shape(p));
  const auto weight = test::random_values(p.weight_elements(), 2);
  EXPECT_THAT([&] { conv2d_forward(exec, *plan, x.view(), weight.data(), y.view()); },
              test::fires("bytes of workspace"));
}

}  // namespace
}  // namespace simclr
