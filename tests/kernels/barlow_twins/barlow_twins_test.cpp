// The fast op against the plain loops in double from the same floats: shapes, cuts into shards, threads, strides,
// extremes. The distributed part is in barlow_twins_loss_test.cpp.
#include "kernels/barlow_twins/barlow_twins.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

using test::barlow_problem;
using test::BarlowTwinsOutputs;
using test::TestMatrix;

// Every output and the scratch start as NaN. z in the global order.
BarlowTwinsOutputs run(const std::vector<float>& z, const BarlowTwinsProblem& p, int64_t stride, int threads = 1) {
  const test::PoisonedContext context(threads, barlow_twins_scratch(p));
  const Exec& exec = context.exec();
  TestMatrix z_in(test::by_shards(z, p.shards, p.columns), p.rows(), p.columns, stride);
  TestMatrix y(p.rows(), p.columns, round_up(p.columns, 64)), grad_z(p.rows(), p.columns, stride);
  std::vector<double> sums(2 * p.columns, NAN), squares = sums, inv_std = sums, radial = sums;
  std::vector<float> products(p.columns * p.columns, NAN);
  double loss = NAN;
  barlow_twins_sums(exec, z_in.view(), p, sums.data());
  barlow_twins_square_sums(exec, z_in.view(), p, sums.data(), squares.data());
  barlow_twins_standardize(exec, z_in.view(), p, sums.data(), squares.data(), y.view(), inv_std.data());
  barlow_twins_products(exec, y.view(), p, products.data());
  barlow_twins_loss(exec, p, products.data(), radial.data(), &loss);
  barlow_twins_backward(exec, y.view(), p, products.data(), inv_std.data(), radial.data(), grad_z.view());
  return {loss, grad_z.dense(), grad_z.padding_is_zero()};
}

TEST(BarlowTwinsOp, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 63, 64, 65, 130}) {
    for (const auto& [n, shards] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {1, 8}, {3, 4}, {33, 1}, {17, 8}}) {
      const BarlowTwinsProblem p = barlow_problem(n, shards, columns, 0.05);
      const auto z = test::make_views(p.batch, columns, 0.5F, 1);
      test::expect_matches_reference(run(z, p, columns), z, p);
      test::expect_matches_reference(run(z, p, padded_cols(columns) + 16), z, p);
    }
  }
}

TEST(BarlowTwinsOp, SurvivesExtremes) {
  for (const auto& extreme : test::barlow_extremes()) {
    SCOPED_TRACE(extreme.name);
    test::expect_matches_reference(run(extreme.z, extreme.problem, extreme.problem.columns), extreme.z,
                                   extreme.problem);
  }
}

TEST(BarlowTwinsOp, AConstantColumnIsZeroExactly) {
  const BarlowTwinsProblem p = barlow_problem(4, 8, 1);
  const BarlowTwinsOutputs got = run(std::vector<float>(64, 0.1F), p, 1);
  EXPECT_EQ(got.loss, 1);  // c = 0
  EXPECT_EQ(got.grad_z, std::vector<float>(64, 0.0F));
}

TEST(BarlowTwinsOp, BitsDoNotDependOnThreads) {
  const BarlowTwinsProblem p = barlow_problem(5, 8, 150);
  const auto z = test::make_views(p.batch, p.columns, 0.3F, 7);
  const BarlowTwinsOutputs one = run(z, p, 160);
  for (const int threads : {2, 3}) {
    const BarlowTwinsOutputs more = run(z, p, 160, threads);
    EXPECT_EQ(more.loss, one.loss);
    EXPECT_TRUE(test::same_bits(more.grad_z, one.grad_z));
  }
}

// Another order of eight doubles is seldom seen in y: what ranks add up is looked at itself.
TEST(BarlowTwinsOp, SumsShardsInTreeOrder) {
  const BarlowTwinsProblem p = barlow_problem(5, 8, 150);
  BarlowTwinsProblem one = p;
  one.shards = 1;
  const test::PoisonedContext context(2, barlow_twins_scratch(p));
  const Exec& exec = context.exec();
  TestMatrix z(test::by_shards(test::make_views(p.batch, p.columns, 0.3F, 8), 8, p.columns), p.rows(), p.columns,
               p.columns);
  TestMatrix y(p.rows(), p.columns, 192);
  std::vector<double> sums(2 * p.columns), squares(2 * p.columns), inv_std(2 * p.columns), d[8];
  std::vector<float> products(p.columns * p.columns), f[8];
  barlow_twins_sums(exec, z.view(), p, sums.data());
  barlow_twins_square_sums(exec, z.view(), p, sums.data(), squares.data());
  barlow_twins_standardize(exec, z.view(), p, sums.data(), squares.data(), y.view(), inv_std.data());
  barlow_twins_products(exec, y.view(), p, products.data());
  for (int64_t s = 0; s < 8; ++s) {
    d[s].resize(squares.size());
    f[s].resize(products.size());
    barlow_twins_square_sums(exec, z.view().slice(s * one.rows(), one.rows()), one, sums.data(), d[s].data());
    barlow_twins_products(exec, y.view().slice(s * one.rows(), one.rows()), one, f[s].data());
  }
  for (size_t k = 0; k < squares.size(); ++k) {
    ASSERT_EQ(squares[k], ((d[0][k] + d[1][k]) + (d[2][k] + d[3][k])) + ((d[4][k] + d[5][k]) + (d[6][k] + d[7][k])));
  }
  for (size_t k = 0; k < products.size(); ++k) {
    ASSERT_EQ(products[k], ((f[0][k] + f[1][k]) + (f[2][k] + f[3][k])) + ((f[4][k] + f[5][k]) + (f[6][k] + f[7][k])));
  }
}

TEST(BarlowTwinsOp, ShowsNonFiniteInput) {
  const BarlowTwinsProblem p = barlow_problem(3, 2, 5);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto z = test::make_views(p.batch, p.columns, 0.3F, 9);
    z[17] = bad;
    EXPECT_TRUE(std::isnan(run(z, p, 5).loss)) << bad;
  }
}

TEST(BarlowTwinsOp, RefusesCallsThatAreDefects) {
  const BarlowTwinsProblem good = barlow_problem(2, 2, 3);
  const auto changed = [&](auto&& change) {
    BarlowTwinsProblem p = good;
    change(p);
    return p;
  };
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.batch = 1; })); }, test::fires("no variance"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.columns = 0; })); }, test::fires("0 columns"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.shards = 3; })); }, test::fires("power of two"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.batch = 3; })); }, test::fires("in a batch of 3"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.lambda = -1; })); }, test::fires("lambda"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.scale = 0; })); }, test::fires("scale"));
  EXPECT_THAT([&] { barlow_twins_scratch(changed([](auto& p) { p.eps = NAN; })); }, test::fires("eps"));
  const test::PoisonedContext context(1, barlow_twins_scratch(good));
  TestMatrix short_z(7, 3), wide_y(8, 4);
  double sums[6];
  float products[9];
  EXPECT_THAT([&] { barlow_twins_sums(context.exec(), short_z.view(), good, sums); }, test::fires("z is [7, 3]"));
  EXPECT_THAT([&] { barlow_twins_products(context.exec(), wide_y.view(), good, products); },
              test::fires("y is [8, 4]"));
  const BarlowTwinsProblem larger = barlow_problem(2, 64, 30);
  TestMatrix y(larger.rows(), 30, 64);
  std::vector<float> big(900);
  EXPECT_THAT([&] { barlow_twins_products(context.exec(), y.view(), larger, big.data()); }, test::fires("scratch"));
}

}  // namespace
}  // namespace simclr
