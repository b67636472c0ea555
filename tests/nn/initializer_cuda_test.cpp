// Initial weights drawn on the GPU: the bits of the CPU, also where two mathematical libraries might round differently.
#include <algorithm>
#include <cmath>

#include "kernels/initializer/initializer.h"
#include "kernels/initializer/rounding.h"
#include "src/comm/single_process_collectives.h"
#include "src/device/choose_device.h"
#include "src/nn/initializer.h"
#include "src/nn/model.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

constexpr int64_t kCounts[] = {1, 2, 7, 256, 4099, 300001};

TEST(InitializerCuda, UniformHasTheBitsOfTheCpu) {
  const test::CudaRun cuda(Precision::kFp32, {});
  for (const int64_t count : kCounts) {
    const WeightStream stream = weight_stream(0xfedcba9876543210, "projector.0.weight");
    const test::DeviceArray<float> on_device(static_cast<size_t>(count));
    std::vector<float> expected(count);
    draw_uniform(cuda.exec(), stream, 0.3, {on_device.data(), on_device.count()});
    draw_uniform(CpuExec{}, stream, 0.3, expected);
    EXPECT_TRUE(test::same_bits(on_device.download(), expected)) << count;
  }
}

// What draw_normal makes of an array, and the elements that it leaves to the host.
struct Normal {
  std::vector<float> values;
  std::vector<int64_t> hard;
};
Normal draw_on_gpu(const WeightStream& stream, double sigma, int64_t count) {
  const test::CudaRun cuda(Precision::kFp32, {});
  const test::DeviceArray<float> values(static_cast<size_t>(count));
  const test::DeviceArray<HardToRound> list(std::vector<HardToRound>(1));
  draw_normal(cuda.exec(), stream, sigma, {values.data(), values.count()}, list.data());
  const HardToRound hard = list.download()[0];
  Normal drawn{values.download(), {hard.element, hard.element + hard.count}};
  std::sort(drawn.hard.begin(), drawn.hard.end());
  return drawn;
}

TEST(InitializerCuda, NormalHasTheBitsOfTheCpu) {
  for (const int64_t count : kCounts) {
    const WeightStream stream = weight_stream(3, "conv1.weight");
    const Normal drawn = draw_on_gpu(stream, 0.07, count);
    EXPECT_THAT(drawn.hard, testing::IsEmpty());  // these are easy: the seed is such
    std::vector<float> expected(count);
    HardToRound none;
    draw_normal(CpuExec{}, stream, 0.07, expected, &none);
    EXPECT_EQ(none.count, 0U);
    EXPECT_TRUE(test::same_bits(drawn.values, expected)) << count;
  }
}

// Seeds of a convolution [64, 8, 3, 3] called "hard", found by trying: one of its weights lies within a 2^-50th of the
// middle of two floats.
struct Hard {
  uint64_t seed;
  int64_t element;
};
constexpr Hard kHard[] = {{193, 1332}, {1100, 1871}, {1826, 1224}};
constexpr int64_t kHardElements = 64 * 8 * 9;

TEST(InitializerCuda, LeavesToTheHostWhatIsHardToRound) {
  for (const Hard& hard : kHard) {
    const WeightStream stream = weight_stream(hard.seed, "hard");
    const double sigma = std::sqrt(2.0 / (64 * 9));
    const Normal drawn = draw_on_gpu(stream, sigma, kHardElements);
    EXPECT_EQ(drawn.hard, std::vector{hard.element}) << hard.seed;
    for (int64_t i = 0; i < kHardElements; ++i) {
      const float found = drawn.values[i];
      if (i == hard.element) {
        EXPECT_TRUE(std::isnan(found));
      } else {
        ASSERT_EQ(found, normal_weight(stream, sigma, i)) << hard.seed << ", " << i;
      }
    }
  }
}

TEST(InitializerCuda, TheHostFillsInWhatIsHardToRound) {
  Context gpu(make_cuda_device({}));
  for (const Hard& hard : kHard) {
    std::vector<float> on_cpu(kHardElements), found(kHardElements);
    const Buffer on_gpu = gpu.allocate_elements<float>(kHardElements);
    Parameter p{.name = "hard", .shape = {64, 8, 3, 3}, .elements = kHardElements, .value = on_cpu.data()};
    initialize_kaiming_normal(Context(1), p, hard.seed);
    p.value = on_gpu.as<float>().data();
    initialize_kaiming_normal(gpu, p, hard.seed);
    gpu.device().download(found.data(), on_gpu.data(), on_gpu.bytes());
    EXPECT_TRUE(test::same_bits(found, on_cpu)) << hard.seed;
  }
}

// The margin, tried on numbers around the middle between two floats: what is not hard to round rounds alike within it.
TEST(HardToRound, IsWithinTheMarginOfTheMiddleOfTwoFloats) {
  for (const float low : {1.0F, 1.9999998F, -0.07F, 3e-9F}) {
    const double middle = (double{low} + double{std::nextafter(low, 4.0F * low)}) / 2;
    for (const double near : {0.0, 0.3, -0.9})
      EXPECT_TRUE(initializer::is_hard_to_round(middle * (1 + near * 0x1p-48)));
    for (const double off : {1.1, -1.1, 1000.0}) {
      const double v = middle * (1 + off * 0x1p-48);
      EXPECT_FALSE(initializer::is_hard_to_round(v)) << low << ", " << off;
      for (const double error : {-0x1p-49, 0x1p-49})
        EXPECT_EQ(static_cast<float>(v * (1 + error)), static_cast<float>(v)) << low << ", " << off;
    }
    EXPECT_FALSE(initializer::is_hard_to_round(low));
  }
  EXPECT_FALSE(initializer::is_hard_to_round(0.0));
}

// The whole network: a run starts from the same weights and statistics on a GPU and on the CPU.
TEST(ModelInitializationCuda, HasTheBitsOfTheCpu) {
  const ShardGeometry geometry{.shards = 1, .local_shards = 1, .first_shard = 0, .images_per_shard = 2};
  const ModelSettings settings{
      .encoder = {.depth = 10, .width = 8}, .projector = {.layers = 3, .hidden = 12, .output = 6}, .batch_norm = {}};
  Context cpu(1), gpu(make_cuda_device({}));
  SingleProcessCollectives one;
  const Model expected(cpu, one, geometry, settings, 8, 7), found(gpu, one, geometry, settings, 8, 7);
  const auto check = [&](const std::string& name, const float* on_gpu, const float* on_cpu, int64_t elements) {
    std::vector<float> values(elements);
    gpu.device().download(values.data(), on_gpu, values.size() * sizeof(float));
    EXPECT_TRUE(test::same_bits(values, std::span(on_cpu, values.size()))) << name;
  };
  const auto &weights = found.store().parameters(), &same = expected.store().parameters();
  ASSERT_EQ(weights.size(), same.size());
  for (size_t i = 0; i < same.size(); ++i) check(same[i].name, weights[i].value, same[i].value, same[i].elements);
  const auto &buffers = found.store().buffers(), &alike = expected.store().buffers();
  ASSERT_EQ(buffers.size(), alike.size());
  for (size_t i = 0; i < alike.size(); ++i) check(alike[i].name, buffers[i].value, alike[i].value, alike[i].elements);
}

}  // namespace
}  // namespace simclr
