// The reference itself: numbers by hand, the textbook formula (log-sum-exp and softmax), finite differences.
#include "kernels/infonce/infonce_ref.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

// Two images, both views equal: e = (1,0), (0,1), (1,0), (0,1). Each anchor sees its positive at similarity 1 and two
// negatives at 0, so with tau = 1: loss_i = log(1 + 2 / exp(1 - m)), q = 2 / (2 + exp(1 - m)), the same for all four.
// dL/ds: q/2 / 4 on a negative, -q / 4 on the positive; anchor 0: 1/4 (q/2 (0,1) - q (1,0) + q/2 (0,1)) = 1/4 (-q, q),
// as key the same again. The radial part of (-q/2, q/2) goes with the normalization; z = 2 e halves the rest.
TEST(InfoNceReferenceTest, MatchesNumbersByHand) {
  const std::vector<double> e = {1, 0, 0, 1, 1, 0, 0, 1};
  const std::vector<double> z = {2, 0, 0, 2, 2, 0, 0, 2};
  for (const double margin : {0.0, 0.5}) {
    const double q = 2 / (2 + std::exp(1 - margin));
    const InfoNceReferenceSettings settings{.batch = 2, .columns = 2, .temperature = 1.0, .margin = margin};
    const InfoNceReference r = infonce_reference(z, settings);
    EXPECT_NEAR(r.loss, std::log(1 + 2 / std::exp(1 - margin)), 1e-15);
    for (const double loss : r.losses) EXPECT_NEAR(loss, r.loss, 1e-15);
    EXPECT_LE(test::relative_error(r.grad_e, {-q / 2, q / 2, q / 2, -q / 2, -q / 2, q / 2, q / 2, -q / 2}), 1e-15);
    EXPECT_LE(test::relative_error(r.grad_z, {0, q / 4, q / 4, 0, 0, q / 4, q / 4, 0}), 1e-15);
    EXPECT_EQ(infonce_reference_from_embeddings(e, settings).loss, r.loss);
  }
  EXPECT_NEAR(infonce_reference(z, {.batch = 2, .columns = 2, .temperature = 1.0, .margin = 0}).loss,
              0.5514447139320511, 1e-15);
}

// lse_i - l_i,pos(i) with the maximum over the whole row, as the papers write it.
double textbook_loss(const std::vector<double>& e, const InfoNceReferenceSettings& s) {
  const int64_t rows = 2 * s.batch;
  double loss = 0;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> l(rows, -INFINITY);
    for (int64_t j = 0; j < rows; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < s.columns; ++c) dot += e[i * s.columns + c] * e[j * s.columns + c];
      if (j != i) l[j] = (dot - (j == (i + s.batch) % rows ? s.margin : 0)) / s.temperature;
    }
    const double top = *std::max_element(l.begin(), l.end());
    double sum = 0;
    for (const double x : l) sum += std::exp(x - top);
    loss += (top + std::log(sum) - l[(i + s.batch) % rows]) / static_cast<double>(rows);
  }
  return loss;
}

TEST(InfoNceReferenceTest, EqualsTheTextbookFormula) {
  const std::vector<double> e = test::to_double(test::make_views(6, 5, 0.5F, 1));
  for (const double temperature : {0.3, 1.0, 20.0}) {
    for (const double margin : {0.0, 0.4}) {
      const InfoNceReferenceSettings s{.batch = 6, .columns = 5, .temperature = temperature, .margin = margin};
      const double expected = textbook_loss(e, s);
      EXPECT_NEAR(infonce_reference_from_embeddings(e, s).loss, expected, 1e-14 * (1 + expected));
    }
  }
}

// Central differences, step h: the truncation error is h^2/6 times a third derivative of size about 1/tau^3, the
// rounding error 1e-16 L / h. With tau >= 0.2, h = 1e-5: 2e-9 and 1e-10 against gradients of 0.01 to 1.
TEST(InfoNceReferenceTest, GradientsMatchFiniteDifferences) {
  constexpr double kStep = 1e-5;
  const std::vector<double> z = test::to_double(test::make_views(5, 3, 0.5F, 2));
  for (const double temperature : {0.2, 1.0}) {
    for (const double margin : {0.0, 0.3}) {
      const InfoNceReferenceSettings s{.batch = 5, .columns = 3, .temperature = temperature, .margin = margin};
      const auto differences = [&](auto&& loss_of) {
        std::vector<double> out(z.size());
        for (size_t k = 0; k < z.size(); ++k) {
          std::vector<double> plus = z, minus = z;
          plus[k] += kStep;
          minus[k] -= kStep;
          out[k] = (loss_of(plus) - loss_of(minus)) / (2 * kStep);
        }
        return out;
      };
      const auto by_z = differences([&](const auto& x) { return infonce_reference(x, s).loss; });
      const auto by_e = differences([&](const auto& x) { return infonce_reference_from_embeddings(x, s).loss; });
      EXPECT_LE(test::relative_error(infonce_reference(z, s).grad_z, by_z), 1e-6) << temperature << " " << margin;
      EXPECT_LE(test::relative_error(infonce_reference_from_embeddings(z, s).grad_e, by_e), 1e-6) << temperature;
    }
  }
}

// 1 - p would be 0 here: q is about exp(-1/tau), 1e-87 at tau = 0.005.
TEST(InfoNceReferenceTest, KeepsTheGradientWhereTheLossVanishes) {
  const std::vector<double> z = {2, 0, 0, 2, 2, 0, 0, 2};
  const InfoNceReference r = infonce_reference(z, {.batch = 2, .columns = 2, .temperature = 0.005, .margin = 0});
  EXPECT_NEAR(r.loss / (2 * std::exp(-200.0)), 1, 1e-12);
  EXPECT_NEAR(r.grad_z[1] / (2 * std::exp(-200.0) / 0.005 / 4), 1, 1e-12);
}

}  // namespace
}  // namespace simclr
