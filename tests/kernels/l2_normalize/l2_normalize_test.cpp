// l2_normalize: numbers by hand, then against the formula in double, then rows that break a careless norm.
#include "kernels/l2_normalize/l2_normalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::TestMatrix;
using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

struct Result {
  std::vector<float> e, grad_z;
  std::vector<double> norms;
  bool padding_is_zero;
};

Result run(const std::vector<float>& z, const std::vector<float>& grad_e, int64_t cols, int64_t stride,
           int threads = 1) {
  const int64_t rows = static_cast<int64_t>(z.size()) / cols;
  const Exec exec = CpuExec{.threads = threads};
  TestMatrix z_in(z, rows, cols, stride), g_in(grad_e, rows, cols, stride), e(rows, cols, stride),
      grad_z(rows, cols, stride);
  std::vector<double> norms(rows, NAN);
  l2_normalize_forward(exec, z_in.view(), e.view(), norms);
  l2_normalize_backward(exec, e.view(), norms, g_in.view(), grad_z.view());
  return {e.dense(), grad_z.dense(), norms, e.padding_is_zero() && grad_z.padding_is_zero()};
}

TEST(L2Normalize, MatchesNumbersByHand) {
  // |(3, 4)| = 5; g = (1, 0): g - e <e, g> = (1 - 0.36, -0.48), over 5
  const Result r = run({3, 4}, {1, 0}, 2, 2);
  EXPECT_THAT(r.e, ElementsAre(FloatEq(0.6F), FloatEq(0.8F)));
  EXPECT_THAT(r.norms, ElementsAre(5.0));
  EXPECT_THAT(r.grad_z, ElementsAre(FloatEq(0.128F), FloatEq(-0.096F)));
}

TEST(L2Normalize, MatchesTheFormulaInDouble) {
  for (const int64_t cols : {1, 3, 16, 17, 128}) {
    constexpr int64_t kRows = 131;  // three tasks, the last one short
    const auto z = test::random_numbers(kRows * cols, 1), g = test::random_numbers(kRows * cols, 2);
    const Result r = run(z, g, cols, round_up(cols, 16) + 16);
    EXPECT_TRUE(r.padding_is_zero);
    std::vector<double> e(z.begin(), z.end()), grad_z(z.size());
    for (int64_t i = 0; i < kRows; ++i) {
      double square = 0, radial = 0;
      for (int64_t c = 0; c < cols; ++c) square += e[i * cols + c] * e[i * cols + c];
      for (int64_t c = 0; c < cols; ++c) radial += (e[i * cols + c] /= std::sqrt(square)) * g[i * cols + c];
      for (int64_t c = 0; c < cols; ++c)
        grad_z[i * cols + c] = (g[i * cols + c] - e[i * cols + c] * radial) / std::sqrt(square);
    }
    EXPECT_LE(test::relative_error(r.e, e), 6e-8) << cols;
    // e is rounded to float before backward uses it; one column has gradient 0 up to that rounding
    if (cols > 1) {
      EXPECT_LE(test::relative_error(r.grad_z, grad_z), 3e-7) << cols;
    }
  }
}

TEST(L2Normalize, TakesNormsThatFloatSquaresCannotHold) {
  const Result r = run({1e20F, 1e20F, 3e-12F, 4e-12F}, {1, 0, 1, 0}, 2, 3);
  const float h = std::sqrt(0.5F);
  EXPECT_THAT(r.e, ElementsAre(FloatEq(h), FloatEq(h), FloatEq(0.6F), FloatEq(0.8F)));
  EXPECT_NEAR(r.norms[0], std::sqrt(2.0) * 1e20, 1e13);
  EXPECT_THAT(r.grad_z,
              ElementsAre(FloatEq(0.5F / (std::sqrt(2.0F) * 1e20F)), FloatEq(-0.5F / (std::sqrt(2.0F) * 1e20F)),
                          FloatEq(0.128e12F), FloatEq(-0.096e12F)));
}

TEST(L2Normalize, RowsBelowTheFloorAreScaledAndGetNoGradient) {
  const Result r = run({0, 0, 1e-20F, 0, 5e-13F, 0}, {1, 2, 3, 4, 5, 6}, 2, 2);
  EXPECT_THAT(r.e, ElementsAre(0, 0, FloatEq(1e-8F), 0, FloatEq(0.5F), 0));
  EXPECT_THAT(r.grad_z, Each(0.0F));
}

TEST(L2Normalize, ShowsNonFiniteInput) {
  EXPECT_TRUE(std::isnan(run({NAN, 1}, {0, 0}, 2, 2).e[1]));
  EXPECT_TRUE(std::isnan(run({INFINITY, 1}, {0, 0}, 2, 2).e[0]));
}

TEST(L2Normalize, BitsDoNotDependOnThreads) {
  const auto z = test::random_numbers(200 * 7, 3), g = test::random_numbers(200 * 7, 4);
  const Result one = run(z, g, 7, 16), three = run(z, g, 7, 16, 3);
  EXPECT_EQ(one.e, three.e);
  EXPECT_EQ(one.grad_z, three.grad_z);
}

TEST(L2Normalize, WorksInPlace) {
  TestMatrix m(std::vector<float>{3, 4}, 1, 2, 4), g(std::vector<float>{1, 0}, 1, 2, 4);
  const Exec exec = CpuExec{};
  std::vector<double> norms(1);
  l2_normalize_forward(exec, m.view(), m.view(), norms);
  l2_normalize_backward(exec, m.view(), norms, g.view(), g.view());
  EXPECT_THAT(m.dense(), ElementsAre(FloatEq(0.6F), FloatEq(0.8F)));
  EXPECT_THAT(g.dense(), ElementsAre(FloatEq(0.128F), FloatEq(-0.096F)));
}

TEST(L2Normalize, RefusesShapesThatDoNotFit) {
  const Exec exec = CpuExec{};
  TestMatrix a(2, 3), b(2, 4);
  std::vector<double> two(2), three(3);
  EXPECT_THROW(l2_normalize_forward(exec, a.view(), b.view(), two), Error);
  EXPECT_THROW(l2_normalize_forward(exec, a.view(), a.view(), three), Error);
  EXPECT_THROW(l2_normalize_backward(exec, a.view(), two, b.view(), a.view()), Error);
  EXPECT_THROW(l2_normalize_backward(exec, a.view(), two, a.view(), a.view()), Error);
}

}  // namespace
}  // namespace simclr
