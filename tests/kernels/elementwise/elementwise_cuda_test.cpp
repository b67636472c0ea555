// relu and add on CUDA: the same bits as the CPU ops, for every length, in both storage types.
#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::StoredArray;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kGrid = 4096 * 256 * 4;  // elements that the largest grid takes in one go
const int64_t kLengths[] = {0, 1, 3, 4, 31, 33, 127, 1023, 4099};

// n values with one more that the op must not touch.
StoredArray with_sentinel(DataType type, std::vector<float> values) {
  values.push_back(-7.0F);
  return {type, values};
}
std::vector<float> without_sentinel(const StoredArray& array) {
  auto values = array.download();
  EXPECT_EQ(values.back(), -7.0F);
  values.pop_back();
  return values;
}

class ReluAddCuda : public testing::TestWithParam<DataType> {
 protected:
  const DataType type_ = GetParam();
  const test::CudaRun run_{test::precision_of(type_), {}};
  const Exec cpu_ = CpuExec{};
};
INSTANTIATE_TEST_SUITE_P(Types, ReluAddCuda, testing::ValuesIn(test::kStorageTypes),
                         [](const auto& instance) { return test::name_of(instance.param); });

TEST_P(ReluAddCuda, HandNumbers) {
  const std::vector<float> x = {-2, -0x1p-100F, 0, 0x1p-100F, 3, kInfinity, -kInfinity, test::kNaN};
  const StoredArray in(type_, x), grad_y(type_, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  StoredArray y(type_, 8), grad_x(type_, 8);
  relu_forward(run_.exec(), 8, in.data(), y.data());
  relu_backward(run_.exec(), 8, grad_y.data(), y.data(), grad_x.data());
  EXPECT_TRUE(test::same_bits(
      y.download(), test::as_stored(type_, std::vector<float>{0, 0, 0, 0x1p-100F, 3, kInfinity, 0, test::kNaN})));
  EXPECT_THAT(grad_x.download(), testing::ElementsAre(0, 0, 0, 4, 5, 6, 0, 0));  // 0 at the corner

  const StoredArray part(type_, std::vector<float>{1, -2, kInfinity, test::kNaN});
  const StoredArray total(type_, std::vector<float>{10, 20, -kInfinity, 1});
  add_to(run_.exec(), 4, part.data(), total.data());
  const auto sum = total.download();
  EXPECT_EQ(sum[0], 11);
  EXPECT_EQ(sum[1], 18);
  EXPECT_TRUE(std::isnan(sum[2]) && std::isnan(sum[3]));
}

// Both ops round once, so the CPU's float result, stored, is the only right one.
TEST_P(ReluAddCuda, GivesWhatTheCpuGivesForEveryLength) {
  for (const int64_t n : kLengths) {
    const auto x = test::as_stored(type_, test::random_values(n, 1));
    const auto other = test::as_stored(type_, test::random_values(n, 2));
    std::vector<float> y(x.size()), grad_x(x.size()), total = other;
    relu_forward(cpu_, n, x.data(), y.data());
    relu_backward(cpu_, n, other.data(), y.data(), grad_x.data());
    if (n > 0) add_to(cpu_, n, x.data(), total.data());

    const StoredArray in = with_sentinel(type_, x), grad_y = with_sentinel(type_, other);
    const std::vector<float> nan(x.size(), test::kNaN);
    const StoredArray out = with_sentinel(type_, nan), grad_in = with_sentinel(type_, nan);
    const StoredArray sum = with_sentinel(type_, other);
    relu_forward(run_.exec(), n, in.data(), out.data());
    relu_backward(run_.exec(), n, grad_y.data(), out.data(), grad_in.data());
    add_to(run_.exec(), n, in.data(), sum.data());
    EXPECT_TRUE(test::same_bits(without_sentinel(out), y)) << n;
    EXPECT_TRUE(test::same_bits(without_sentinel(grad_in), grad_x)) << n;
    EXPECT_TRUE(test::same_bits(without_sentinel(sum), test::as_stored(type_, total))) << n;
  }
}

TEST_P(ReluAddCuda, WorkInPlace) {
  const StoredArray x(type_, std::vector<float>{-1, 2, -3, 4}), grad(type_, std::vector<float>{10, 20, 30, 40});
  relu_forward(run_.exec(), 4, x.data(), x.data());
  relu_backward(run_.exec(), 4, grad.data(), x.data(), grad.data());
  EXPECT_THAT(x.download(), testing::ElementsAre(0, 2, 0, 4));
  EXPECT_THAT(grad.download(), testing::ElementsAre(0, 20, 0, 40));
}

// More than the largest grid has threads for: 5 elements of a second round.
TEST(ReluAdd, CudaGoesRoundTheGrid) {
  const auto type = DataType::kBfloat16;
  const test::CudaRun run(test::precision_of(type), {});
  const int64_t n = kGrid + 5;
  const auto values = test::as_stored(type, test::random_values(1024, 1));
  std::vector<float> tiled(n);
  for (size_t i = 0; i < tiled.size(); ++i) tiled[i] = values[i % values.size()];
  const StoredArray part(type, tiled), total(type, tiled);
  add_to(run.exec(), n, part.data(), total.data());
  const auto sum = total.download();
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], 2 * tiled[i]) << i;
}

}  // namespace
}  // namespace simclr
