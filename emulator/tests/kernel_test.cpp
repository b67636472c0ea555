// Kernels that are right give right results, in each order of threads and streams (ctest runs this program in three).
// Expected values come from the CUDA programming guide and from plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "emulator/settings.h"
#include "emulator/tests/device_memory.h"
#include "emulator/tests/kernels.h"

namespace simclr::test {

namespace {

// Numbers between -1 and 1 that float holds exactly, and so do sums of a few thousand of them.
std::vector<float> exact_numbers(size_t count) {
  std::vector<float> numbers(count);
  uint32_t state = 12345;
  for (float& x : numbers) {
    state = state * 1664525U + 1013904223U;
    x = static_cast<float>(static_cast<int>(state >> 25) - 64) / 64.0F;
  }
  return numbers;
}

TEST(Kernel, ElementwiseOfAnySize) {
  const Stream stream;
  for (const size_t count : {1U, 31U, 33U, 255U, 257U, 5000U, 70000U}) {
    const std::vector<float> x = exact_numbers(count);
    std::vector<float> y(count, 1.0F);
    const DeviceArray<float> device_x(x);
    const DeviceArray<float> device_y(y);
    ASSERT_EQ(axpy(2.0F, device_x.data(), device_y.data(), count, stream), cudaSuccess);
    for (size_t i = 0; i < count; ++i) y[i] += 2.0F * x[i];
    EXPECT_EQ(device_y.read_after(stream), y) << count;
  }
}

TEST(Kernel, SumWithShufflesSharedMemoryAndAtomics) {
  const Stream stream;
  for (const size_t count : {1U, 100U, 256U, 257U, 20000U}) {
    const std::vector<float> x = exact_numbers(count);
    const DeviceArray<float> device_x(x);
    const DeviceArray<float> out(std::vector<float>{10.0F});
    ASSERT_EQ(sum(device_x.data(), out.data(), count, stream), cudaSuccess);
    EXPECT_EQ(out.read_after(stream)[0], std::accumulate(x.begin(), x.end(), 10.0F)) << count;
  }
}

TEST(Kernel, SoftmaxWithDynamicSharedMemory) {
  const Stream stream;
  const int rows = 7;
  const int columns = 301;
  const std::vector<float> x = exact_numbers(static_cast<size_t>(rows) * columns);
  const DeviceArray<float> device_x(x);
  const DeviceArray<float> device_y(x.size());
  ASSERT_EQ(softmax(device_x.data(), device_y.data(), rows, columns, stream), cudaSuccess);
  const std::vector<float> y = device_y.read_after(stream);
  for (int r = 0; r < rows; ++r) {
    const float* row = x.data() + static_cast<size_t>(r) * columns;
    double total = 0.0;
    for (int c = 0; c < columns; ++c) total += std::exp(static_cast<double>(row[c]));
    for (int c = 0; c < columns; ++c) {
      const double expected = std::exp(static_cast<double>(row[c])) / total;
      // 301 additions and an exp in float: some ulps.
      EXPECT_NEAR(y[static_cast<size_t>(r) * columns + c], expected, 1e-5 * expected);
    }
  }
}

TEST(Kernel, TiledProductWithTwoDimensionalBlocks) {
  const Stream stream;
  const int m = 33;
  const int n = 17;
  const int k = 40;
  const std::vector<float> a = exact_numbers(m * k);
  const std::vector<float> b = exact_numbers(k * n);
  std::vector<float> c(m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];  // exact
    }
  }
  const DeviceArray<float> device_a(a);
  const DeviceArray<float> device_b(b);
  const DeviceArray<float> device_c(c.size());
  ASSERT_EQ(tiled_product(device_a.data(), device_b.data(), device_c.data(), m, n, k, stream), cudaSuccess);
  EXPECT_EQ(device_c.read_after(stream), c);
}

TEST(Kernel, IndicesOfThreeDimensions) {
  const Stream stream;
  const dim3 blocks(3, 2, 2);
  const dim3 threads(5, 3, 4);
  const size_t count = 12 * 60;
  const DeviceArray<int> out(count * 6);
  ASSERT_EQ(write_indices(out.data(), blocks, threads, stream), cudaSuccess);
  const std::vector<int> indices = out.read_after(stream);
  // x runs fastest, in blocks and in threads.
  std::vector<int> expected;
  for (int bz = 0; bz < 2; ++bz)
    for (int by = 0; by < 2; ++by)
      for (int bx = 0; bx < 3; ++bx)
        for (int tz = 0; tz < 4; ++tz)
          for (int ty = 0; ty < 3; ++ty)
            for (int tx = 0; tx < 5; ++tx) expected.insert(expected.end(), {bx, by, bz, tx, ty, tz});
  EXPECT_EQ(indices, expected);
}

class WarpOperations : public testing::TestWithParam<int> {};

TEST_P(WarpOperations, OfEachLane) {
  const Stream stream;
  const int threads = GetParam();
  const DeviceArray<int> out(static_cast<size_t>(threads) * kWarpResults);
  ASSERT_EQ(warp_operations(out.data(), threads, stream), cudaSuccess);
  const std::vector<int> results = out.read_after(stream);
  for (int t = 0; t < threads; ++t) {
    const int* r = results.data() + t * kWarpResults;
    const int lane = t % 32;
    const int first = t - lane;  // thread of lane 0
    const int value = 100 + t;
    EXPECT_EQ(r[0], 100 + first + 3);
    EXPECT_EQ(r[1], 100 + first + lane / 8 * 8 + 1);
    EXPECT_EQ(r[2], lane >= 1 ? value - 1 : value);
    EXPECT_EQ(r[3], lane % 8 >= 2 ? value - 2 : value);
    const int undefined = -1;  // of a lane that is not there
    EXPECT_EQ(r[4], lane == 31 ? value : (t + 1 < threads ? value + 1 : undefined));
    EXPECT_EQ(r[5], lane % 8 < 6 ? value + 2 : value);
    EXPECT_EQ(r[6], 100 + (t ^ 1));
    // An earlier group can be read, a later one cannot.
    EXPECT_EQ(r[7], (lane / 8) % 2 == 1 ? value - 8 : value);
    unsigned multiples = 0;
    for (int l = 0; l < std::min(32, threads - first); ++l) multiples |= (first + l) % 3 == 0 ? 1U << l : 0U;
    EXPECT_EQ(static_cast<unsigned>(r[8]), multiples);
    EXPECT_EQ(r[9], 1);
    EXPECT_EQ(r[10], 0);
    EXPECT_EQ(r[11], t % 2 == 0 ? 100 + (t ^ 2) : -1);
  }
}

// 40: the last warp has 8 lanes.
INSTANTIATE_TEST_SUITE_P(Kernel, WarpOperations, testing::Values(32, 64, 40));

TEST(Kernel, BarriersThatCount) {
  const Stream stream;
  for (const auto& [limit, all, any] : {std::tuple{0, 0, 0}, std::tuple{5, 0, 1}, std::tuple{96, 1, 1}}) {
    const DeviceArray<int> out(3);
    ASSERT_EQ(counting_barriers(out.data(), 96, limit, stream), cudaSuccess);
    EXPECT_EQ(out.read_after(stream), (std::vector<int>{limit, all, any}));
  }
}

TEST(Kernel, Atomics) {
  const Stream stream;
  const DeviceArray<int> out(std::vector<int>{0, 0, 0, 1000, 0, 0xFFF, 0, 0});
  const DeviceArray<double> total(std::vector<double>{1.0});
  ASSERT_EQ(atomics(out.data(), total.data(), stream), cudaSuccess);
  const std::vector<int> r = out.read_after(stream);
  EXPECT_EQ(r[0], 255 * 256 / 2);
  EXPECT_EQ(r[1], -256);
  EXPECT_EQ(r[2], 255);
  EXPECT_EQ(r[3], 0);
  EXPECT_EQ(r[4], 0xFF);
  EXPECT_EQ(r[5], 0xF00);
  EXPECT_GE(r[6], 1);
  EXPECT_EQ(r[7], r[6]);  // the one thread whose exchange succeeded
  EXPECT_EQ(total.read()[0], 1.0 + 256 * 0.25);
}

TEST(Kernel, OrderIsTheSettings) {
  const Stream stream;
  const DeviceArray<int> out(std::vector<int>(65, 0));
  ASSERT_EQ(log_order(out.data(), 2, 32, stream), cudaSuccess);
  std::vector<int> order = out.read_after(stream);
  EXPECT_EQ(order[0], 64);
  order.erase(order.begin());
  std::vector<int> forward(64);
  std::iota(forward.begin(), forward.end(), 0);
  switch (emulator::settings().order) {
    case emulator::Order::kForward:
      EXPECT_EQ(order, forward);
      break;
    case emulator::Order::kReverse:
      std::reverse(forward.begin(), forward.end());
      EXPECT_EQ(order, forward);
      break;
    case emulator::Order::kRandom:
      EXPECT_NE(order, forward);
      EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), forward.begin()));
      break;
  }
}

TEST(Kernel, ManyBarriersOfManyThreads) {
  const Stream stream;
  ASSERT_EQ(many_barriers(5, 1024, stream), cudaSuccess);
  ASSERT_EQ(do_nothing(100, 64, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

// The device functions that the emulator defines are plain functions here. Values by hand, from the programming guide.
TEST(Math, FunctionsOfDeviceCode) {
  EXPECT_EQ(::max(1.0F, NAN), 1.0F);  // of a number and a NaN, the number
  EXPECT_EQ(::min(NAN, -1.0F), -1.0F);
  EXPECT_EQ(::min(3, 2LL), 2LL);
  EXPECT_EQ(::max(3U, 5U), 5U);
  EXPECT_EQ(rsqrtf(4.0F), 0.5F);
  EXPECT_EQ(__frsqrt_rn(0.25F), 2.0F);
  EXPECT_EQ(__saturatef(2.0F), 1.0F);
  EXPECT_EQ(__saturatef(0.25F), 0.25F);
  EXPECT_EQ(__saturatef(NAN), 0.0F);
  EXPECT_EQ(__float_as_uint(1.0F), 0x3f800000U);
  EXPECT_EQ(__uint_as_float(0x40000000U), 2.0F);
  EXPECT_EQ(__float2int_rn(2.5F), 2);  // to even
  EXPECT_EQ(__float2int_rd(-0.5F), -1);
  EXPECT_EQ(__float2int_rz(-1.5F), -1);
  EXPECT_EQ(__umulhi(0x80000000U, 6U), 3U);
  EXPECT_EQ(__popc(0xF0F0U), 8);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(cospif(1.0F), -1.0F);
  EXPECT_EQ(sinpif(2.5F), 1.0F);
}

TEST(Launch, LimitsOfGridAndBlock) {
  const Stream stream;
  const DeviceArray<float> out(std::vector<float>(4, 0.0F));
  const auto shape = [&](dim3 blocks, dim3 threads) { return launch_shape(out.data(), blocks, threads, stream); };
  EXPECT_EQ(shape({1}, {1024}), cudaSuccess);
  EXPECT_EQ(shape({1}, {16, 1, 64}), cudaSuccess);
  EXPECT_EQ(shape({1, 65535, 1}, {1}), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);

  EXPECT_EQ(shape({1}, {1025}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({1}, {32, 33}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({1}, {1, 1, 65}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({0}, {32}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({1}, {32, 0}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({1, 65536}, {1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({1, 1, 65536}, {1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(shape({0x80000000U}, {1}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // a refused launch leaves the device as it was
}

TEST(Launch, LimitsOfSharedMemory) {
  const Stream stream;
  const DeviceArray<float> out(32);
  // 48 KB without asking, 227 KB with (compute capability 9.0).
  EXPECT_EQ(use_dynamic_shared(out.data(), 48 << 10, false, stream), cudaSuccess);
  EXPECT_EQ(use_dynamic_shared(out.data(), (48 << 10) + 4, false, stream), cudaErrorInvalidValue);
  EXPECT_EQ(use_dynamic_shared(out.data(), 227 << 10, true, stream), cudaSuccess);
  EXPECT_EQ(use_dynamic_shared(out.data(), (227 << 10) + 4, true, stream), cudaErrorInvalidValue);
  EXPECT_EQ(out.read_after(stream)[31], 1.0F);
  cudaGetLastError();
}

TEST(Launch, AttributesAreRefused) {
  const Stream stream;
  const DeviceArray<float> out(4);
  EXPECT_EQ(launch_with_attribute(out.data(), stream), cudaErrorNotSupported);
  cudaGetLastError();
}

}  // namespace

}  // namespace simclr::test
