// What the tests of the infonce op share on every device: problems, unit rows, and how far single precision may be off.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/infonce/infonce.h"
#include "kernels/infonce/infonce_ref.h"
#include "tests/kernels/rows_support.h"

namespace simclr::test {

// A rank that owns all shards.
inline InfoNceProblem problem(int64_t n, int64_t shards, int64_t columns, double temperature = 0.2,
                              double margin = 0.0) {
  return {.batch = n * shards,
          .shard_images = n,
          .shards = shards,
          .first_shard = 0,
          .columns = columns,
          .temperature = temperature,
          .margin = margin};
}

// Unit rows up to the rounding to float.
inline std::vector<float> normalized(std::vector<float> z, int64_t columns) {
  for (size_t i = 0; i < z.size(); i += columns) {
    double square = 0;
    for (int64_t c = 0; c < columns; ++c) square += static_cast<double>(z[i + c]) * z[i + c];
    for (int64_t c = 0; c < columns; ++c) z[i + c] = static_cast<float>(z[i + c] / std::sqrt(square));
  }
  return z;
}

// A float similarity is off by about 3e-8 (rows have norm 1; worse rows are averaged out by 2B of them), which moves
// exp(s/tau) by 3e-8/tau relative, the loss and the gradient with it; 3e-7 covers the sums in float. With one column
// all terms of a product are equal but for two sizes, and roundings add up instead of averaging out: at most 6e-8 a
// term.
inline double tolerance(const InfoNceProblem& p) {
  return 3e-7 + 1e-7 / p.temperature + (p.columns == 1 ? 2e-8 * static_cast<double>(p.keys()) : 0);
}

// The length of the positives' part of the gradient, sqrt(sum_i (q_i / (2B tau))^2): what errors are measured by. The
// gradient itself is not a measure where everything cancels (one column, collapsed rows: exactly 0); on realistic data it
// is as long, and infonce_accuracy_test.cpp measures by it.
inline double pull_of_positives(const InfoNceReference& reference, const InfoNceProblem& p) {
  double square = 0;
  for (const double loss : reference.losses) {
    square += p.decoupled ? 1 : std::pow(-std::expm1(-loss), 2);  // q = 1 - exp(-loss)
  }
  return std::sqrt(square) / (static_cast<double>(p.keys()) * p.temperature);
}

// What an op made of a problem whose rank owns all shards.
struct InfoNceOutputs {
  std::vector<double> shard_loss, losses;
  std::vector<float> grad_anchors, grad_keys;
  bool padding_is_zero;
};

// dL/de of all rows: anchor side plus key side.
inline std::vector<float> whole_gradient(const InfoNceOutputs& r, const InfoNceProblem& p) {
  std::vector<float> grad = by_shards(r.grad_keys, p.shards, p.columns);
  for (size_t k = 0; k < grad.size(); ++k) grad[k] += r.grad_anchors[k];
  return grad;
}

// slack: how many times tolerance() an algorithm may be off.
inline void expect_matches_reference(const InfoNceOutputs& r, const std::vector<float>& e, const InfoNceProblem& p,
                                     double slack = 1) {
  const InfoNceReference expected = infonce_reference_from_embeddings(to_double(e), {.batch = p.batch,
                                                                                     .columns = p.columns,
                                                                                     .temperature = p.temperature,
                                                                                     .margin = p.margin,
                                                                                     .decoupled = p.decoupled});
  const std::string what =
      fmt::format("B={} n={} C={} tau={} margin={}", p.batch, p.shard_images, p.columns, p.temperature, p.margin);
  double sum = 0;
  for (const double s : r.shard_loss) sum += s;
  const double loss = sum / static_cast<double>(p.keys());
  // Decoupled it passes through zero.
  const double size = p.decoupled ? 1 + std::abs(expected.loss) : expected.loss;
  EXPECT_LE(std::abs(loss - expected.loss), slack * tolerance(p) * size) << what;
  std::vector<double> by_shard;
  for (int64_t row = 0; row < p.anchors(); ++row) {
    const int64_t global = p.global_row(row / (2 * p.shard_images), row % (2 * p.shard_images));
    by_shard.insert(by_shard.end(), &expected.grad_e[global * p.columns],
                    &expected.grad_e[global * p.columns] + p.columns);
  }
  std::vector<double> error = to_double(whole_gradient(r, p));
  for (size_t k = 0; k < error.size(); ++k) error[k] -= by_shard[k];
  // Below 1e-30 a float cannot hold the gradient: q reaches exp(-400).
  EXPECT_LE(norm(error), slack * tolerance(p) * pull_of_positives(expected, p) + 1e-30) << what;
  EXPECT_TRUE(r.padding_is_zero) << what;
}

// Unit rows e [2B, C] that a careless loss gets wrong, of 10 images with 16 columns.
inline std::vector<std::vector<float>> extreme_rows() {
  auto opposite = normalized(make_views(10, 16, 0.0F, 5), 16);
  for (size_t k = opposite.size() / 2; k < opposite.size(); ++k) opposite[k] = -opposite[k];
  auto zeros = normalized(make_views(10, 16, 0.2F, 6), 16);
  std::fill_n(zeros.begin(), 3 * 16, 0.0F);  // what rows of norm 0 and 1e-20 become
  return {normalized(make_views(10, 16, 0.2F, 2), 16),
          normalized(make_views(10, 16, 0.0F, 3), 16),   // identical views
          normalized(make_views(10, 16, 50.0F, 4), 16),  // unrelated views
          opposite,
          normalized(std::vector<float>(20 * 16, 1.0F), 16),  // everything collapsed
          zeros};
}

}  // namespace simclr::test
