// The loss in double: a case for the hand, long double on sizes around the blocks, finite differences, bits that no cut
// into ranks and threads changes, and rows that a careless loss gets wrong.
#include "src/check_loss/exact_infonce.h"

#include <gtest/gtest.h>

#include "tests/check_loss/check_loss_support.h"
#include "tests/check_loss/long_double_infonce.h"
#include "tests/data/npy_support.h"
#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::run_parts;
using test::view_pair;

std::vector<double> make_views(int64_t images, int64_t columns, float noise, uint32_t seed) {
  return test::to_double(test::make_views(images, columns, noise, seed));
}

test::LongDoubleLoss expected_of(const std::vector<double>& z, int64_t columns, const LossSettings& settings) {
  return test::long_double_infonce({z.begin(), z.end()}, columns, settings);
}

// |a - b| / |b|, with b at least `measure` long.
double error_of(const std::vector<double>& actual, const std::vector<long double>& expected, long double measure) {
  long double square = 0, length = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    square += (actual[k] - expected[k]) * (actual[k] - expected[k]);
    length += expected[k] * expected[k];
  }
  return actual.size() == expected.size()
             ? static_cast<double>(std::sqrt(square) / std::max(std::sqrt(length), measure))
             : NAN;
}

// Two images whose views agree, at a right angle to each other: s = 1 to the positive, 0 to both negatives, so
// loss = log(1 + 2 exp(-1/tau)). The gradient of a row is tangential: to it only the negatives add, each twice (as
// anchor and as key): |dL/dz| = 2 sqrt(1) * 2 p / (4 tau), p = exp(-1/tau) / (1 + 2 exp(-1/tau)), two negatives of one
// direction.
TEST(ExactInfoNce, ByHand) {
  const std::vector<double> z = {1, 0, 0, 1, 1, 0, 0, 1};
  const auto run = run_parts<ExactInfoNce>(view_pair(z, 2), {.temperature = 0.5});
  const double small = std::exp(-2.0), p = small / (1 + 2 * small);
  for (const double loss : run.losses) EXPECT_NEAR(loss, std::log1p(2 * small), 1e-15);
  const double pull = 2 * 2 * p / (4 * 0.5);
  const std::vector<double> grad = {0, pull, pull, 0, 0, pull, pull, 0};
  for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(run.grad_z[k], grad[k], 1e-15) << k;

  const auto decoupled = run_parts<ExactInfoNce>(view_pair(z, 2), {.temperature = 0.5, .decoupled = true});
  for (const double loss : decoupled.losses) EXPECT_NEAR(loss, std::log(2) - 2, 1e-15);
  const auto margin = run_parts<ExactInfoNce>(view_pair(z, 2), {.temperature = 0.5, .margin = 0.25});
  for (const double loss : margin.losses) EXPECT_NEAR(loss, std::log1p(2 * std::exp(-1.5)), 1e-15);
}

// All embeddings equal: every anchor takes its positive for one of 2N - 1.
TEST(ExactInfoNce, CollapsedRowsGiveLogOfTheirNumber) {
  const std::vector<double> z(2 * 150 * 3, 0.7);
  const auto run = run_parts<ExactInfoNce>(view_pair(z, 3), {.temperature = 0.1});
  EXPECT_NEAR(run.loss(), std::log(299.0), 1e-13);
  for (const double g : run.grad_z) EXPECT_NEAR(g, 0, 1e-15);
}

// Sizes below, at and above the blocks of 64 keys and 128 rows, and odd ones.
TEST(ExactInfoNce, MatchesLongDouble) {
  double worst_loss = 0, worst_gradient = 0;
  for (const auto& [images, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {2, 1}, {2, 16}, {3, 5}, {31, 8}, {32, 16}, {33, 17}, {64, 3}, {65, 33}, {70, 128}, {129, 6}}) {
    for (const auto& settings : std::vector<LossSettings>{{.temperature = 0.5},
                                                          {.temperature = 0.1, .margin = 0.3},
                                                          {.temperature = 0.005},
                                                          {.temperature = 0.005, .margin = 1.9},
                                                          {.temperature = 100},
                                                          {.temperature = 0.07, .decoupled = true},
                                                          {.temperature = 0.005, .decoupled = true}}) {
      const std::vector<double> z = make_views(images, columns, 0.8F, 11);
      const test::LongDoubleLoss expected = expected_of(z, columns, settings);
      const auto run = run_parts<ExactInfoNce>(view_pair(z, columns), settings);
      const std::string what = fmt::format("N={} C={} tau={} margin={} decoupled={}", images, columns,
                                           settings.temperature, settings.margin, settings.decoupled);
      // A loss of about 0 that is not small (decoupled: two large numbers cancel) is measured against 1.
      const double measure = settings.decoupled ? std::max(1.0, std::abs(static_cast<double>(expected.loss)))
                                                : static_cast<double>(expected.loss);
      const double loss_error = std::abs(run.loss() - static_cast<double>(expected.loss)) / measure;
      const double gradient_error = error_of(run.grad_z, expected.grad_z, columns == 1 ? expected.pull : 0);
      EXPECT_LE(loss_error, 1e-12) << what;
      EXPECT_LE(gradient_error, 1e-12) << what;
      worst_loss = std::max(worst_loss, loss_error);
      worst_gradient = std::max(worst_gradient, gradient_error);
    }
  }
  fmt::print("against long double: loss {:.1e}, gradient {:.1e}\n", worst_loss, worst_gradient);
}

// dL/dz_k = (L(z_k + h) - L(z_k - h)) / 2h. With h = 1e-5 the cut-off is about h^2 / tau^3 = 1e-7 for tau = 0.1 and a
// third derivative of order 1; rounding adds 1e-16 / h = 1e-11.
TEST(ExactInfoNce, MatchesFiniteDifferences) {
  const int64_t columns = 4;
  const std::vector<double> z = make_views(6, columns, 0.8F, 12);
  for (const auto& settings : std::vector<LossSettings>{
           {.temperature = 0.5}, {.temperature = 0.2, .margin = 0.4}, {.temperature = 0.3, .decoupled = true}}) {
    const auto run = run_parts<ExactInfoNce>(view_pair(z, columns), settings);
    for (size_t k = 0; k < z.size(); ++k) {
      constexpr double kStep = 1e-5;
      double loss[2];
      for (const int side : {0, 1}) {
        std::vector<double> moved = z;
        moved[k] += side == 0 ? -kStep : kStep;
        loss[side] = run_parts<ExactInfoNce>(view_pair(moved, columns), settings).loss();
      }
      EXPECT_NEAR(run.grad_z[k], (loss[1] - loss[0]) / (2 * kStep), 1e-7) << "element " << k;
    }
  }
}

TEST(ExactInfoNce, TheSameBitsForEveryCut) {
  const int64_t images = 101, columns = 13;
  const ViewPair views = view_pair(make_views(images, columns, 0.8F, 13), columns);
  const LossSettings settings{.temperature = 0.1, .margin = 0.1};
  const auto one = run_parts<ExactInfoNce>(views, settings);
  for (const auto& [ranks, threads] :
       std::vector<std::pair<int, int>>{{1, 3}, {2, 1}, {3, 2}, {4, 1}, {7, 1}, {102, 1}}) {
    const auto run = run_parts<ExactInfoNce>(views, settings, ranks, threads);
    EXPECT_EQ(run.losses, one.losses) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(run.grad_z, one.grad_z) << ranks << " ranks, " << threads << " threads";
  }
}

// The loss does not know lengths; a gradient grows as its row shrinks. 1e-13 is under the floor: no gradient.
TEST(ExactInfoNce, RowsOfAnyLength) {
  const int64_t columns = 8;
  const std::vector<double> z = make_views(5, columns, 0.8F, 14);
  const LossSettings settings{.temperature = 0.2};
  const auto plain = run_parts<ExactInfoNce>(view_pair(z, columns), settings);
  for (const double factor : {1e300, 1e160, 1e20, 1e-9}) {
    std::vector<double> scaled = z;
    for (int64_t c = 0; c < columns; ++c) scaled[3 * columns + c] *= factor;
    const auto run = run_parts<ExactInfoNce>(view_pair(scaled, columns), settings);
    EXPECT_NEAR(run.loss() / plain.loss(), 1, 1e-14) << factor;
    for (size_t k = 0; k < z.size(); ++k) {
      const double expected = plain.grad_z[k] / (k / columns == 3 ? factor : 1);
      EXPECT_NEAR(run.grad_z[k], expected, 1e-13 * std::abs(expected) + 1e-14 * (k / columns == 3 ? 1 / factor : 1));
    }
  }
  for (const double factor : {0.0, 1e-14, 1e-300}) {
    std::vector<double> scaled = z;
    for (int64_t c = 0; c < columns; ++c) scaled[3 * columns + c] *= factor;
    const auto run = run_parts<ExactInfoNce>(view_pair(scaled, columns), settings);
    const test::LongDoubleLoss expected = expected_of(scaled, columns, settings);
    EXPECT_NEAR(run.loss() / static_cast<double>(expected.loss), 1, 1e-13);
    EXPECT_LE(error_of(run.grad_z, expected.grad_z, 0), 1e-13);
    for (int64_t c = 0; c < columns; ++c) EXPECT_EQ(run.grad_z[3 * columns + c], 0);
  }
}

}  // namespace
}  // namespace simclr
