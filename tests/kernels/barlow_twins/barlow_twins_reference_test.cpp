// The plain loops of Barlow Twins: numbers that one can check by hand, and finite differences.
#include "kernels/barlow_twins/barlow_twins_ref.h"

#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

// Two images: a column is +-x, its standard deviation |x|, so y = +-a with a^2 = x^2 / (x^2 + eps).
TEST(BarlowTwinsReference, MatchesNumbersByHand) {
  const BarlowTwinsReferenceSettings s{.batch = 2, .columns = 2, .lambda = 0.1, .scale = 3, .eps = 1};
  // view 1: columns +-1 and +-2 about 5; view 2: columns -+1 and +-2.
  const BarlowTwinsReference r = barlow_twins_reference(std::vector<double>{6, 2, 4, -2, -1, 2, 1, -2}, s);
  // a_1 = 1/sqrt(2), a_2 = 2/sqrt(5); c = [[-a1 a1, a1 a2], [-a2 a1, a2 a2]]
  const double cross = std::sqrt(0.5) * std::sqrt(0.8);
  ASSERT_EQ(r.c.size(), 4U);
  EXPECT_NEAR(r.c[0], -0.5, 1e-15);
  EXPECT_NEAR(r.c[1], cross, 1e-15);
  EXPECT_NEAR(r.c[2], -cross, 1e-15);
  EXPECT_NEAR(r.c[3], 0.8, 1e-15);
  EXPECT_NEAR(r.loss, 3 * (1.5 * 1.5 + 0.2 * 0.2 + 0.1 * (0.4 + 0.4)), 1e-14);
  // Column 1 of view 1: dL/dy = G_11 y_2,k1 / B + G_12 y_2,k2 / B with G = 2 scale {c_11 - 1, lambda c_12}; the mean of
  // dL/dy is 0, that of dL/dy y is its product with y, and 1 - a_1^2 = 1/2 of dL/dy is left.
  const double grad_y = (6 * -1.5 * -std::sqrt(0.5) + 6 * 0.1 * cross * std::sqrt(0.8)) / 2;
  EXPECT_NEAR(r.grad_z[0], std::sqrt(0.5) * grad_y * 0.5, 1e-14);
  EXPECT_NEAR(r.grad_z[2], -r.grad_z[0], 1e-14);
}

TEST(BarlowTwinsReference, IsZeroWhereViewsAgreeAndColumnsDoNot) {
  const std::vector<double> view = {1, 1, 1, -1, -1, 1, -1, -1};  // two orthogonal columns
  std::vector<double> z = view;
  z.insert(z.end(), view.begin(), view.end());
  const BarlowTwinsReference r = barlow_twins_reference(z, {.batch = 4, .columns = 2, .eps = 1e-300});
  EXPECT_EQ(r.loss, 0);
  for (const double x : r.grad_z) EXPECT_EQ(x, 0);
}

// Central differences, step 1e-5: 1e-10 of truncation and 1e-11 of rounding against gradients of 0.01 to 1.
TEST(BarlowTwinsReference, GradientMatchesFiniteDifferences) {
  constexpr double kStep = 1e-5;
  const std::vector<double> z = test::to_double(test::make_views(5, 3, 0.5F, 2));
  for (const double lambda : {0.0, 0.005, 1.0}) {
    for (const double scale : {1.0, 0.024}) {
      const BarlowTwinsReferenceSettings s{.batch = 5, .columns = 3, .lambda = lambda, .scale = scale};
      std::vector<double> differences(z.size());
      for (size_t k = 0; k < z.size(); ++k) {
        std::vector<double> plus = z, minus = z;
        plus[k] += kStep;
        minus[k] -= kStep;
        differences[k] = (barlow_twins_reference(plus, s).loss - barlow_twins_reference(minus, s).loss) / (2 * kStep);
      }
      EXPECT_LE(test::relative_error(barlow_twins_reference(z, s).grad_z, differences), 1e-8)
          << "lambda " << lambda << " scale " << scale;
    }
  }
}

// What the fast one makes use of: sums over images that follow from c.
TEST(BarlowTwinsReference, SumsOverImagesFollowFromTheCorrelation) {
  constexpr int64_t kBatch = 7, kColumns = 4;
  const BarlowTwinsReferenceSettings s{.batch = kBatch, .columns = kColumns, .lambda = 0.3, .scale = 2};
  const BarlowTwinsReference r =
      barlow_twins_reference(test::to_double(test::make_views(kBatch, kColumns, 0.5F, 3)), s);
  for (int64_t i = 0; i < kColumns; ++i) {
    double radial = 0;
    for (int64_t j = 0; j < kColumns; ++j) {
      const double c = r.c[i * kColumns + j];
      radial += 2 * s.scale * (i == j ? c - 1 : s.lambda * c) * c / kBatch;
    }
    double sum = 0, sum_along_y = 0;
    for (int64_t k = 0; k < kBatch; ++k) {
      sum += r.grad_y[k * kColumns + i];
      sum_along_y += r.grad_y[k * kColumns + i] * r.y[k * kColumns + i] / kBatch;
    }
    EXPECT_NEAR(sum, 0, 1e-15);
    EXPECT_NEAR(sum_along_y, radial, 1e-15);
  }
}

}  // namespace
}  // namespace simclr
