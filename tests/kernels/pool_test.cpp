// pool: numbers by hand, a direct definition for odd sizes, ties, NaN, padding channels, threads.
#include "kernels/pool/pool.h"

#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

using test::FeatureMaps;
using test::Shape;
using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Shape pooled(Shape s) {
  s.height = max_pool_out(s.height), s.width = max_pool_out(s.width);
  return s;
}

struct MaxPool {
  std::vector<float> y, grad_x;
};
MaxPool run_max_pool(const Shape& shape, const std::vector<float>& x, const std::vector<float>& grad_y, int threads) {
  const Exec exec = CpuExec{.threads = threads};
  const FeatureMaps in(shape, x), grad_out(pooled(shape), grad_y);
  FeatureMaps out(pooled(shape)), grad_in(shape);
  std::vector<uint8_t> winners(out.all().size(), 255);
  max_pool_forward(exec, in.view(), out.view(), winners.data());
  max_pool_backward(exec, grad_out.view(), winners.data(), grad_in.view());
  EXPECT_TRUE(out.padding_is_zero() && grad_in.padding_is_zero());
  return {out.plain(), grad_in.plain()};
}

// The definition, on plain arrays: the first maximum of each window in row order, and NaN above all numbers.
MaxPool plain_max_pool(const Shape& s, const std::vector<float>& x, const std::vector<float>& grad_y) {
  MaxPool r{.y = {}, .grad_x = std::vector<float>(x.size())};
  for (int64_t map = 0; map < s.rows() * s.channels; ++map) {
    for (int64_t p = 0; p < max_pool_out(s.height); ++p) {
      for (int64_t q = 0; q < max_pool_out(s.width); ++q) {
        size_t best = x.size();
        for (int64_t i = std::max<int64_t>(0, 2 * p - 1); i <= std::min(s.height - 1, 2 * p + 1); ++i) {
          for (int64_t j = std::max<int64_t>(0, 2 * q - 1); j <= std::min(s.width - 1, 2 * q + 1); ++j) {
            const auto at = static_cast<size_t>((map * s.height + i) * s.width + j);
            if (best == x.size() || x[at] > x[best] || std::isnan(x[at])) best = at;
          }
        }
        r.grad_x[best] += grad_y[r.y.size()];
        r.y.push_back(x[best]);
      }
    }
  }
  return r;
}

TEST(MaxPool, HandNumbers) {
  const std::vector<float> x = {9, 2, 3, 4,  //
                                5, 6, 7, 8,  //
                                1, 1, 1, 1,  //
                                0, 0, 0, 2};
  const auto got = run_max_pool({1, 1, 1, 4, 4}, x, {1, 10, 100, 1000}, 1);
  EXPECT_THAT(got.y, ElementsAre(9, 8, 6, 8));  // windows around (0,0), (0,2), (2,0), (2,2); the 8 wins twice
  EXPECT_THAT(got.grad_x, ElementsAre(1, 0, 0, 0, 0, 100, 0, 1010, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(MaxPool, FirstOfEqualsWins) {
  const auto same = run_max_pool({1, 1, 1, 3, 3}, std::vector<float>(9, 5.0F), {1, 10, 100, 1000}, 1);
  EXPECT_THAT(same.grad_x, ElementsAre(1, 10, 0, 100, 1000, 0, 0, 0, 0));
  const auto lowest = run_max_pool({1, 1, 1, 3, 3}, std::vector<float>(9, -kInfinity), {1, 10, 100, 1000}, 1);
  EXPECT_THAT(lowest.y, testing::Each(-kInfinity));
  EXPECT_THAT(lowest.grad_x, ElementsAre(1, 10, 0, 100, 1000, 0, 0, 0, 0));
}

TEST(MaxPool, NanWins) {
  const auto got = run_max_pool({1, 1, 1, 3, 3}, {1, 2, 3, 4, test::kNaN, 6, 7, 8, kInfinity}, {1, 1, 1, 1}, 1);
  for (const float v : got.y) EXPECT_TRUE(std::isnan(v));  // the center is in all four windows
  EXPECT_THAT(got.grad_x, ElementsAre(0, 0, 0, 0, 4, 0, 0, 0, 0));
}

TEST(MaxPool, GivesTheDefinition) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{2, 1, 33, 1, 6}}) {
    auto x = test::random_values(shape.elements(), 1);
    for (float& v : x) v = std::round(4 * v);  // many ties
    const auto grad_y = test::random_values(pooled(shape).elements(), 2);
    const auto want = plain_max_pool(shape, x, grad_y);
    for (const int threads : {1, 3}) {
      const auto got = run_max_pool(shape, x, grad_y, threads);
      EXPECT_TRUE(test::same_bits(got.y, want.y));
      EXPECT_LT(test::relative_error(got.grad_x, test::widen(want.grad_x)), 4 * test::kUnit);  // up to 4 terms
    }
  }
}

TEST(GlobalAveragePool, GivesTheDefinition) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{2, 1, 33, 4, 4}}) {
    const int64_t places = shape.height * shape.width, stride = padded_cols(shape.channels);
    const auto x = test::random_values(shape.elements(), 1);
    const auto grad_y = test::random_values(shape.rows() * shape.channels, 2);
    std::vector<float> one_thread;
    for (const int threads : {1, 2, 3}) {
      const Exec exec = CpuExec{.threads = threads};
      const FeatureMaps in(shape, x);
      FeatureMaps grad_x(shape);
      std::vector<float> y(shape.rows() * stride, test::kNaN), grad(y.size(), test::kNaN);
      for (int64_t i = 0; i < shape.rows() * shape.channels; ++i)
        grad[i / shape.channels * stride + i % shape.channels] = grad_y[i];
      global_average_pool_forward(exec, in.view(), {y.data(), shape.rows(), shape.channels, stride});
      global_average_pool_backward(exec, {grad.data(), shape.rows(), shape.channels, stride}, grad_x.view());
      EXPECT_TRUE(grad_x.padding_is_zero());
      const auto spread = grad_x.plain();
      for (int64_t i = 0; i < shape.rows(); ++i) {
        for (int64_t c = 0; c < stride; ++c) {
          double mean = 0;
          for (int64_t p = 0; p < places && c < shape.channels; ++p) {
            const int64_t map = i * shape.channels + c;
            mean += x[map * places + p] / static_cast<double>(places);
            ASSERT_FLOAT_EQ(spread[map * places + p], grad_y[map] / static_cast<float>(places));
          }
          // |x| <= 1: a sum of n terms in float errs by n u n at most, its n-th part by n u
          ASSERT_NEAR(y[i * stride + c], mean, static_cast<double>(places + 1) * test::kUnit);
          if (c >= shape.channels) {
            ASSERT_EQ(y[i * stride + c], 0.0F);
          }
        }
      }
      if (one_thread.empty()) one_thread = y;
      EXPECT_TRUE(test::same_bits(y, one_thread));
    }
  }
}

TEST(Pool, RefusesWrongShapes) {
  const Exec exec = CpuExec{};
  FeatureMaps x({1, 2, 3, 5, 5}), y({1, 2, 3, 3, 3}), wrong({1, 2, 3, 2, 3}), other({1, 2, 4, 3, 3});
  std::vector<uint8_t> winners(y.all().size());
  std::vector<float> m(64);
  const int64_t stride = padded_cols(3);
  EXPECT_THAT([&] { max_pool_forward(exec, x.view(), wrong.view(), winners.data()); }, test::fires("5x5 to 2x3"));
  EXPECT_THAT([&] { max_pool_forward(exec, x.view(), other.view(), winners.data()); }, test::fires("max pool"));
  EXPECT_THAT([&] { max_pool_backward(exec, wrong.view(), winners.data(), x.view()); }, test::fires("5x5 to 2x3"));
  EXPECT_THAT([&] { global_average_pool_forward(exec, x.view(), {m.data(), 3, 3, stride}); }, test::fires("[3, 3]"));
  EXPECT_THAT([&] { global_average_pool_forward(exec, x.view(), {m.data(), 2, 4, stride}); }, test::fires("[2, 4]"));
  EXPECT_THAT([&] { global_average_pool_forward(exec, x.view(), {m.data(), 2, 3, 3}); }, test::fires("average pool"));
  EXPECT_THAT([&] { global_average_pool_backward(exec, {m.data(), 1, 3, stride}, x.view()); }, test::fires("[1, 3]"));
}

}  // namespace
}  // namespace simclr
