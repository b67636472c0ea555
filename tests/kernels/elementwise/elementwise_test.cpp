// relu and add: numbers by hand, NaN and signed zeros, lengths around the cut into tasks, threads.
#include "kernels/elementwise/elementwise.h"
#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kTask = 1 << 16;  // elements that one task of these ops takes
const int64_t kLengths[] = {0, 1, 31, 33, kTask - 1, kTask, kTask + 1, 3 * kTask + 17};

TEST(Relu, HandNumbers) {
  const Exec exec = CpuExec{};
  const std::vector<float> x = {-2, -1e-40F, 0, 1e-40F, 3, kInfinity, -kInfinity, test::kNaN};
  std::vector<float> y(8, -7), grad_x(8, test::kNaN);
  relu_forward(exec, 8, x.data(), y.data());
  // a diverging network must not hide behind a ReLU: NaN stays
  EXPECT_TRUE(test::same_bits(y, std::vector<float>{0, 0, 0, 1e-40F, 3, kInfinity, 0, test::kNaN}));
  const std::vector<float> grad_y = {1, 2, 3, 4, 5, 6, 7, 8};
  relu_backward(exec, 8, grad_y.data(), y.data(), grad_x.data());
  EXPECT_THAT(grad_x, testing::ElementsAre(0, 0, 0, 4, 5, 6, 0, 0));  // 0 at the corner
}

TEST(Relu, GivesTheDefinitionForEveryLengthAndThreadCount) {
  for (const int64_t n : kLengths) {
    const auto x = test::random_values(n, 1), grad_y = test::random_values(n, 2);
    for (const int threads : {1, 3}) {
      const Exec exec = CpuExec{.threads = threads};
      // One element more than the op may touch.
      std::vector<float> y(x.size() + 1, -7.0F), grad_x(x.size() + 1, -7.0F);
      relu_forward(exec, n, x.data(), y.data());
      relu_backward(exec, n, grad_y.data(), y.data(), grad_x.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(y[i], x[i] > 0 ? x[i] : 0) << i << " of " << n;
        ASSERT_EQ(grad_x[i], x[i] > 0 ? grad_y[i] : 0) << i << " of " << n;
      }
      EXPECT_EQ(y.back(), -7.0F) << n;
      EXPECT_EQ(grad_x.back(), -7.0F) << n;
    }
  }
}

TEST(Relu, WorksInPlace) {
  const Exec exec = CpuExec{};
  std::vector<float> x = {-1, 2, -3, 4}, grad = {10, 20, 30, 40};
  relu_forward(exec, 4, x.data(), x.data());
  EXPECT_THAT(x, testing::ElementsAre(0, 2, 0, 4));
  relu_backward(exec, 4, grad.data(), x.data(), grad.data());
  EXPECT_THAT(grad, testing::ElementsAre(0, 20, 0, 40));
}

TEST(Add, HandNumbers) {
  const Exec exec = CpuExec{};
  const std::vector<float> part = {1, -2, kInfinity, test::kNaN, 0x1p-24F};
  std::vector<float> total = {10, 20, -kInfinity, 1, 1};
  add_to(exec, 5, part.data(), total.data());
  EXPECT_EQ(total[0], 11);
  EXPECT_EQ(total[1], 18);
  EXPECT_TRUE(std::isnan(total[2]));  // inf - inf
  EXPECT_TRUE(std::isnan(total[3]));
  EXPECT_EQ(total[4], 1);  // a tie, rounded to even
}

TEST(Add, GivesTheDefinitionForEveryLengthAndThreadCount) {
  for (const int64_t n : kLengths) {
    const auto part = test::random_values(n, 1), start = test::random_values(n + 1, 2);
    for (const int threads : {1, 3}) {
      auto total = start;
      add_to(CpuExec{.threads = threads}, n, part.data(), total.data());
      for (size_t i = 0; i < part.size(); ++i) ASSERT_EQ(total[i], start[i] + part[i]) << i << " of " << n;
      EXPECT_EQ(total.back(), start.back()) << n;
    }
  }
}

TEST(ReluAdd, RefuseWrongUse) {
  const Exec exec = CpuExec{};
  float v[2] = {1, 2};
  EXPECT_THAT([&] { relu_forward(exec, -1, v, v); }, test::fires("over -1 elements"));
  EXPECT_THAT([&] { relu_backward(exec, -1, v, v, v); }, test::fires("over -1 elements"));
  EXPECT_THAT([&] { add_to(exec, -1, v, v + 1); }, test::fires("add of -1 elements"));
  EXPECT_THAT([&] { add_to(exec, 2, v, v); }, test::fires("add of 2 elements"));
}

}  // namespace
}  // namespace simclr
