// What the tests of Barlow Twins share on every device: problems, and how far single precision may be off.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/barlow_twins/barlow_twins.h"
#include "kernels/barlow_twins/barlow_twins_ref.h"
#include "tests/kernels/rows_support.h"

namespace simclr::test {

// A rank that owns all shards.
inline BarlowTwinsProblem barlow_problem(int64_t n, int64_t shards, int64_t columns, double lambda = 0.005,
                                         double scale = 1.0) {
  return {
      .batch = n * shards, .shard_images = n, .shards = shards, .columns = columns, .lambda = lambda, .scale = scale};
}

inline BarlowTwinsReference barlow_reference(const std::vector<float>& z, const BarlowTwinsProblem& p) {
  return barlow_twins_reference(
      to_double(z), {.batch = p.batch, .columns = p.columns, .lambda = p.lambda, .scale = p.scale, .eps = p.eps});
}

// What an op or a loss made of z.
struct BarlowTwinsOutputs {
  double loss;
  std::vector<float> grad_z;  // [2B, C], by shards
  bool padding_is_zero;
};

// A sum of `terms` products in float adds about the root of that number of roundings, 6e-8 each.
inline double product_error(int64_t terms) {
  return 6e-8 * std::sqrt(static_cast<double>(terms));
}

// How far an element of c, which lies in [-1, 1], may be off: y is rounded to float, twice 6e-8, then comes a product.
inline double correlation_error(const BarlowTwinsProblem& p) {
  return 1.5e-7 + product_error(p.shard_images);
}

// An error of d in every element of c moves the loss by 2 d sum |c - wanted| (weighted), and the gradient by 2 d in
// the diagonal of G (the rest is multiplied by lambda). Then come products with C terms; what is to be
// measured by is the gradient before the standardization takes from it what lies along y, which may be nearly all.
// Seen: a third of either bound.
inline void expect_matches_reference(const BarlowTwinsOutputs& got, const std::vector<float>& z,
                                     const BarlowTwinsProblem& p) {
  const BarlowTwinsReference expected = barlow_reference(z, p);
  const std::string what =
      fmt::format("B={} n={} C={} lambda={} scale={}", p.batch, p.shard_images, p.columns, p.lambda, p.scale);
  const double limit = correlation_error(p), columns = static_cast<double>(p.columns);
  double loss_slope = 0, inv_std_square = 0, grad_square = 0;
  for (int64_t i = 0; i < p.columns; ++i) {
    for (int64_t j = 0; j < p.columns; ++j)
      loss_slope += 2 * p.scale * (i == j ? 1 : p.lambda) * std::abs(expected.c[i * p.columns + j] - (i == j ? 1 : 0));
  }
  for (const double x : expected.inv_std) inv_std_square += x * x;
  for (size_t k = 0; k < z.size(); ++k) {
    const size_t view = k / (z.size() / 2), c = k % static_cast<size_t>(p.columns);
    grad_square += std::pow(expected.inv_std[view * static_cast<size_t>(p.columns) + c] * expected.grad_y[k], 2);
  }
  const double grad_scale =
      std::sqrt(grad_square) + 2 * p.scale * std::sqrt(inv_std_square / static_cast<double>(p.batch));
  std::vector<double> error = to_double(got.grad_z);
  const std::vector<double> grad = by_shards(expected.grad_z, p.shards, p.columns);
  ASSERT_EQ(error.size(), grad.size()) << what;
  for (size_t k = 0; k < error.size(); ++k) error[k] -= grad[k];
  EXPECT_LE(std::abs(got.loss - expected.loss),
            limit * loss_slope + limit * limit * p.scale * columns * (1 + p.lambda * columns) + 1e-14 * expected.loss)
      << what;
  EXPECT_LE(norm(error), (limit + product_error(p.columns)) * grad_scale) << what;
  EXPECT_TRUE(got.padding_is_zero) << what;
}

// Projector outputs z [2B, C] that a careless loss gets wrong.
struct BarlowTwinsExtreme {
  std::string name;
  BarlowTwinsProblem problem;
  std::vector<float> z;
};
inline std::vector<BarlowTwinsExtreme> barlow_extremes() {
  constexpr int64_t kColumns = 6;
  const BarlowTwinsProblem p = barlow_problem(3, 4, kColumns);
  const auto changed = [&](auto&& change) {
    std::vector<float> z = make_views(p.batch, kColumns, 0.5F, 31);
    for (size_t k = 0; k < z.size(); ++k) z[k] = change(z[k], k % kColumns);
    return z;
  };
  auto opposite = make_views(p.batch, kColumns, 0.0F, 32);
  for (size_t k = opposite.size() / 2; k < opposite.size(); ++k) opposite[k] = -opposite[k];
  return {
      {"constant column", p, changed([](float x, size_t c) { return c == 2 ? 0.3F : x; })},
      {"everything constant", p, std::vector<float>(static_cast<size_t>(2 * p.batch * kColumns), -7.7F)},
      {"large mean", p, changed([](float x, size_t c) { return c == 1 ? x + 3e5F : x; })},
      {"huge and tiny columns", p, changed([](float x, size_t c) {
         return c == 0 ? x * 1e30F : c == 1 ? x * 1e-6F : x;
       })},
      {"identical views", p, make_views(p.batch, kColumns, 0.0F, 33)},
      {"opposite views", p, opposite},
      {"one column", barlow_problem(3, 4, 1), make_views(12, 1, 0.5F, 34)},
      {"two images", barlow_problem(1, 2, kColumns), make_views(2, kColumns, 0.5F, 35)},
      {"lambda 0, small scale", barlow_problem(3, 4, kColumns, 0.0, 0.024), make_views(12, kColumns, 0.5F, 36)},
      {"lambda 1, large scale", barlow_problem(3, 4, kColumns, 1.0, 1000), make_views(12, kColumns, 0.5F, 37)},
  };
}

}  // namespace simclr::test
