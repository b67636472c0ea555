// squared_norm on CUDA: the bits of the CPU, whose order and numbers are in squared_norm_test.cpp.
#include "kernels/squared_norm/squared_norm.h"

#include <list>

#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::DeviceArray;

struct Norms {
  std::vector<double> squares;
  double total = test::kNaN;
};

Norms on_cpu(const std::vector<std::vector<float>>& arrays) {
  std::vector<NormRun> runs;
  for (const auto& a : arrays) runs.push_back({a.data(), static_cast<int64_t>(a.size())});
  const test::PoisonedContext context(1, squared_norms_scratch(runs));
  Norms n{std::vector<double>(arrays.size())};
  squared_norms(context.exec(), runs, n.squares.data());
  total_squared_norm(context.exec(), n.squares.data(), static_cast<int64_t>(arrays.size()), &n.total);
  return n;
}

Norms on_cuda(const std::vector<std::vector<float>>& arrays) {
  std::list<DeviceArray<float>> memory;
  std::vector<NormRun> runs;
  for (const auto& a : arrays) runs.push_back({memory.emplace_back(a).data(), static_cast<int64_t>(a.size())});
  const test::CudaRun run(Precision::kFp32, squared_norms_scratch(runs));
  const DeviceArray<NormRun> table(runs);
  const DeviceArray<double> squares(arrays.size()), total(1);
  squared_norms(run.exec(), {runs, table.data()}, squares.data());
  total_squared_norm(run.exec(), squares.data(), static_cast<int64_t>(arrays.size()), total.data());
  return {squares.download(), total.download()[0]};
}

void expect_same_bits(const std::vector<std::vector<float>>& arrays) {
  const Norms want = on_cpu(arrays), got = on_cuda(arrays);
  EXPECT_EQ(got.squares, want.squares);
  EXPECT_EQ(got.total, want.total);
}

TEST(SquaredNormCuda, HasTheBitsOfTheCpu) {
  std::vector<std::vector<float>> arrays;
  uint32_t seed = 1;
  for (const int64_t n : {1, 31, 33, 127, 255, 256, 257, 0, 4095, 4096, 4097, 3 * 4096 + 5, 7, 50001, 8 * 4096})
    arrays.push_back(test::random_values(n, seed++));
  expect_same_bits(arrays);
  for (const auto& one : arrays) expect_same_bits({one});
}

// More blocks than a launch has: a CUDA block takes several of one array and continues in the next.
TEST(SquaredNormCuda, TakesTablesLargerThanTheGrid) {
  expect_same_bits({test::random_values(4096 * 1100 + 3, 1), test::random_values(5, 2), test::random_values(9000, 3)});
}

// 300 arrays: more than the total has lanes.
TEST(SquaredNormCuda, TakesManyArrays) {
  std::vector<std::vector<float>> arrays;
  for (uint32_t k = 0; k < 300; ++k) arrays.push_back(test::random_values(k % 7, k));
  expect_same_bits(arrays);
}

TEST(SquaredNormCuda, ScaledAddendsHaveTheBitsOfTheCpu) {
  const std::vector<float> x = test::random_values(9001, 5), y = test::random_values(9001, 6);
  const DeviceArray<float> device_x(x), device_y(y);
  const auto runs_of = [](const float* a, const float* b) {
    return std::vector<NormRun>{{a, 9001, b, 0.3F}, {b, 33}, {b, 4097, a, -1.0F}};
  };
  const auto runs = runs_of(x.data(), y.data()), device_runs = runs_of(device_x.data(), device_y.data());
  const test::PoisonedContext context(1, squared_norms_scratch(runs));
  std::vector<double> want(3);
  squared_norms(context.exec(), runs, want.data());
  const test::CudaRun run(Precision::kFp32, squared_norms_scratch(runs));
  const DeviceArray<NormRun> table(device_runs);
  const DeviceArray<double> squares(size_t{3});
  squared_norms(run.exec(), {device_runs, table.data()}, squares.data());
  EXPECT_EQ(squares.download(), want);
}

TEST(SquaredNormCuda, ShowsNonFinite) {
  EXPECT_TRUE(std::isnan(on_cuda({{1}, {1, test::kNaN}}).total));
  EXPECT_TRUE(std::isinf(on_cuda({{1}, {std::numeric_limits<float>::infinity()}}).total));
}

TEST(SquaredNormCuda, TakesNoArrays) {
  const test::CudaRun run(Precision::kFp32, {});
  const DeviceArray<double> total(1);
  squared_norms(run.exec(), NormTable(std::span<const NormRun>{}, nullptr), nullptr);
  total_squared_norm(run.exec(), nullptr, 0, total.data());
  EXPECT_EQ(total.download()[0], 0);
}

}  // namespace
}  // namespace simclr
