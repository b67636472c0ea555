// conv2d by Winograd: its error against plain loops in double, the promise on bits, the table, and choices made again.
// Where the library has no Winograd (oneDNN 3, no AVX-512), what is asked of it there.
#include <dnnl_version.h>

#include <cmath>

#include "kernels/conv2d/conv2d_ref.h"
#include "kernels/conv2d/winograd_table.h"
#include "tests/kernels/conv2d_support.h"

namespace simclr {
namespace {

using test::case_name;
using test::Inputs;
using test::Results;
using test::run;

bool library_has_winograd() {
  return DNNL_VERSION_MAJOR == 2 && channel_block() == 16;
}

constexpr const char* kShared = "winograd_shared; winograd_shared; winograd";
constexpr const char* kByEachShard = "winograd; winograd; winograd";

class Winograd : public testing::TestWithParam<Conv2dParams> {
 protected:
  void SetUp() override {
    if (!library_has_winograd()) GTEST_SKIP() << "this processor or its oneDNN has no Winograd convolution";
  }
};

// ||got - expected|| / ||expected||
double relative_error(const std::vector<float>& got, const std::vector<double>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(error / size);
}

// Inputs as they come from a ReLU, which do not cancel in sums.
Inputs inputs_after_relu(const Conv2dParams& p) {
  Inputs in = test::random_inputs(p);
  for (float& x : in.x) x = std::max(x, 0.0F);
  return in;
}

TEST_P(Winograd, IsWithinTwoMillionths) {
  Conv2dParams p = GetParam();
  p.algorithm = ConvolutionAlgorithm::kWinograd;
  const Exec cpu = CpuExec{.threads = 1};
  ASSERT_EQ(make_conv2d_plan(cpu, p)->choice(), kShared);
  constexpr double kBound = 2e-6;
  for (const Inputs& in : {test::random_inputs(p), inputs_after_relu(p)}) {
    const auto x = test::widen(in.x), weight = test::widen(in.weight), grad_y = test::widen(in.grad_y);
    const auto y = conv2d_ref::forward(p, x, weight), grad_x = conv2d_ref::backward_data(p, grad_y, weight);
    const auto grad_weight = conv2d_ref::backward_weights(p, x, grad_y);
    for (const char* choice : {kShared, kByEachShard}) {
      const Results got = run(p, 2, in, choice);
      EXPECT_LE(relative_error(got.y, y), kBound) << choice;
      EXPECT_LE(relative_error(got.grad_x, grad_x), kBound) << choice;
      EXPECT_LE(relative_error(got.grad_weight, grad_weight), kBound) << choice;
    }
  }
}

TEST_P(Winograd, BitsDoNotDependOnThreadsNorOnTheCutIntoRanks) {
  Conv2dParams whole = GetParam(), part = GetParam();
  whole.shards = 8, part.shards = 4;  // as each of two ranks has it
  const Inputs in = test::random_inputs(whole);
  for (const char* choice : {kShared, kByEachShard}) {
    const Results one = run(whole, 1, in, choice), more = run(whole, 3, in, choice);
    EXPECT_TRUE(test::same_bits(one.y, more.y)) << choice;
    EXPECT_TRUE(test::same_bits(one.grad_x, more.grad_x)) << choice;
    EXPECT_TRUE(test::same_bits(one.grad_weight, more.grad_weight)) << choice;
    std::vector<float> halves[2];
    for (size_t rank = 0; rank < 2; ++rank) {
      const auto piece = [&](const std::vector<float>& v) {
        const auto half = static_cast<ptrdiff_t>(v.size() / 2), begin = half * static_cast<ptrdiff_t>(rank);
        return std::vector<float>(v.begin() + begin, v.begin() + begin + half);
      };
      const Results its = run(part, 1, {piece(in.x), in.weight, piece(in.grad_y)}, choice);
      EXPECT_TRUE(test::same_bits(its.y, piece(one.y))) << choice << ", rank " << rank;
      EXPECT_TRUE(test::same_bits(its.grad_x, piece(one.grad_x))) << choice << ", rank " << rank;
      halves[rank] = its.grad_weight;
    }
    for (size_t i = 0; i < halves[0].size(); ++i) halves[0][i] += halves[1][i];
    EXPECT_TRUE(test::same_bits(halves[0], one.grad_weight)) << choice;
  }
}

// Maps that four does not divide, channels that sixteen does not, and those of a ResNet.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd,
    testing::Values(
        Conv2dParams{.shards = 1, .samples = 2, .in_channels = 16, .out_channels = 16, .height = 8, .width = 8},
        Conv2dParams{.shards = 1, .samples = 3, .in_channels = 16, .out_channels = 48, .height = 7, .width = 9},
        Conv2dParams{.shards = 1, .samples = 2, .in_channels = 33, .out_channels = 20, .height = 14, .width = 14},
        Conv2dParams{.shards = 1, .samples = 2, .in_channels = 5, .out_channels = 31, .height = 6, .width = 6},
        Conv2dParams{.shards = 1, .samples = 2, .in_channels = 64, .out_channels = 64, .height = 16, .width = 16},
        Conv2dParams{.shards = 1, .samples = 4, .in_channels = 32, .out_channels = 32, .height = 32, .width = 32},
        Conv2dParams{.shards = 1, .samples = 8, .in_channels = 128, .out_channels = 128, .height = 4, .width = 4}),
    case_name);

// A choice with matrix products counted as direct: which of the two it is follows from the processor.
std::string direct_or_winograd(std::string choice) {
  for (size_t at = choice.find("gemm"); at != std::string::npos; at = choice.find("gemm"))
    choice.replace(at, 4, "direct");
  return choice;
}

constexpr Conv2dParams kLarge = {
    .shards = 1, .samples = 64, .in_channels = 64, .out_channels = 64, .height = 16, .width = 16};

TEST(ConvolutionChoice, IsMadeAgainWhateverTheTableSays) {
  const Exec cpu = CpuExec{};
  const std::string choice = make_conv2d_plan(cpu, kLarge)->choice();
  EXPECT_EQ(direct_or_winograd(choice), library_has_winograd() ? kShared : "direct; direct; direct");
  for (const char* other : {"direct; direct; direct", "direct; winograd; direct", "direct; winograd_shared; winograd",
                            "winograd_shared; winograd; direct", kByEachShard}) {
    if (!library_has_winograd() && std::string(other).find("winograd") != std::string::npos) continue;
    EXPECT_EQ(make_conv2d_plan(cpu, kLarge, other)->choice(), other);
  }
  Conv2dParams direct = kLarge;
  direct.algorithm = ConvolutionAlgorithm::kDirect;
  EXPECT_EQ(direct_or_winograd(make_conv2d_plan(cpu, direct)->choice()), "direct; direct; direct");
}

TEST(ConvolutionChoice, IsDirectForOtherWindowsAndForImages) {
  const Exec cpu = CpuExec{};
  Conv2dParams stride = kLarge, image = kLarge;
  stride.stride = 2;
  image.in_channels = 3, image.input_is_images = true;
  EXPECT_EQ(direct_or_winograd(make_conv2d_plan(cpu, stride)->choice()), "direct; direct; direct");
  EXPECT_EQ(direct_or_winograd(make_conv2d_plan(cpu, image)->choice()), "direct; direct");
}

// Of the measured shapes (docs/decisions/0006-winograd.md), those next to the limits of the table.
TEST(WinogradTable, SaysWhatWasMeasured) {
  struct Line {
    int64_t channels, size, samples;
    bool shared, others, weights;
  };
  for (const auto& [channels, size, samples, shared, others, weights] : {Line{64, 32, 8, true, true, true},
                                                                         {32, 32, 8, true, true, true},
                                                                         {24, 32, 16, true, true, true},
                                                                         {16, 32, 64, false, false, false},
                                                                         {128, 16, 8, true, true, true},
                                                                         {256, 8, 16, true, true, true},
                                                                         {256, 8, 8, true, false, true},
                                                                         {512, 4, 64, true, true, true},
                                                                         {512, 4, 32, true, false, true},
                                                                         {512, 4, 16, false, false, false},
                                                                         {256, 4, 32, true, false, true},
                                                                         {256, 4, 16, true, false, false},
                                                                         {256, 4, 8, false, false, false},
                                                                         {512, 2, 64, false, false, false},
                                                                         {512, 7, 16, true, true, true},
                                                                         {256, 14, 16, true, true, true},
                                                                         {128, 13, 16, true, true, true},
                                                                         {128, 6, 64, false, false, false}}) {
    Conv2dParams p = kLarge;
    p.in_channels = p.out_channels = channels;
    p.height = p.width = size;
    p.samples = samples;
    const std::string name = fmt::format("{} channels, {}x{}, {} samples", channels, size, size, samples);
    for (const int64_t shards : {1, 8}) {  // as many as a rank may have
      p.shards = shards;
      EXPECT_EQ(conv2d::shared_winograd_is_faster(p), shared) << name;
      EXPECT_EQ(conv2d::winograd_is_faster(p, conv2d::Pass::kForward), others) << name;
      EXPECT_EQ(conv2d::winograd_is_faster(p, conv2d::Pass::kBackwardData), others) << name;
      EXPECT_EQ(conv2d::winograd_is_faster(p, conv2d::Pass::kBackwardWeights), weights) << name;
    }
    p.stride = 2;
    EXPECT_FALSE(conv2d::winograd_is_faster(p, conv2d::Pass::kForward)) << name;
    EXPECT_FALSE(conv2d::shared_winograd_is_faster(p)) << name;
  }
}

TEST(ConvolutionChoice, IsRefusedWhereItCannotBeMade) {
  const Exec cpu = CpuExec{};
  Conv2dParams stride = kLarge;
  stride.stride = 2;
  EXPECT_THAT([&] { make_conv2d_plan(cpu, stride, "winograd; direct; direct"); },
              test::refuses(ExitCode::kDevice, "has no Winograd convolution of 64 to 64 channels, window 3, stride 2"));
  EXPECT_THAT([&] { make_conv2d_plan(cpu, kLarge, "engine 3 knobs; engine 0 knobs; engine 1 knobs"); },
              test::refuses(ExitCode::kDevice, "'engine 3 knobs; engine 0 knobs; engine 1 knobs' does not list"));
  EXPECT_THAT([&] { make_conv2d_plan(cpu, kLarge, "direct; direct"); },
              test::refuses(ExitCode::kDevice, "does not list"));
  EXPECT_THAT([&] { make_conv2d_plan(cpu, kLarge, "direct; direct; winograd_shared"); },
              test::refuses(ExitCode::kDevice, "does not list"));
  EXPECT_THAT([&] { make_conv2d_plan(cpu, stride, "direct; winograd_shared; direct"); },
              test::refuses(ExitCode::kDevice, "has no Winograd convolution of 64 to 64 channels, window 3, stride 2"));
  EXPECT_THAT([&] { make_conv2d_plan(cpu, kLarge, "direct; direct; direct; direct"); },
              test::refuses(ExitCode::kDevice, "does not list"));
  if (library_has_winograd()) return;
  Conv2dParams wanted = kLarge;
  wanted.algorithm = ConvolutionAlgorithm::kWinograd;
  EXPECT_THAT([&] { make_conv2d_plan(cpu, wanted); },
              test::refuses(ExitCode::kDevice, "model.convolution: winograd, but oneDNN"));
}

}  // namespace
}  // namespace simclr
