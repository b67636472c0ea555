// squared_norm on the CPU: numbers by hand, the order of the sum, and that threads do not show in it.
#include "kernels/squared_norm/squared_norm.h"

#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

std::vector<double> norms_of(const std::vector<std::vector<float>>& arrays, int threads = 1) {
  std::vector<NormRun> runs;
  for (const auto& a : arrays) runs.push_back({a.data(), static_cast<int64_t>(a.size())});
  const test::PoisonedContext context(threads, squared_norms_scratch(runs));
  std::vector<double> squares(arrays.size(), test::kNaN);
  squared_norms(context.exec(), runs, squares.data());
  return squares;
}

double total_of(const std::vector<double>& squares) {
  double total = test::kNaN;
  total_squared_norm(CpuExec{}, squares.data(), static_cast<int64_t>(squares.size()), &total);
  return total;
}

TEST(SquaredNorm, HandNumbers) {
  EXPECT_THAT(norms_of({{3, 4}, {}, {-1}, {0, 0}}), testing::ElementsAre(25, 0, 1, 0));
  EXPECT_THAT(norms_of({std::vector<float>(4097, 2.0F)}), testing::ElementsAre(4 * 4097));  // exact in any order
  EXPECT_EQ(total_of({25, 0, 1}), 26);
  EXPECT_EQ(total_of({}), 0);
  EXPECT_EQ(total_of(std::vector<double>(300, 1.5)), 450);
}

// values + scale * other: (3 + 1/2 * 2, 0 + 1/2 * 6) = (4, 3), and the bits of the array that holds the sums.
TEST(SquaredNorm, TakesAScaledAddend) {
  const std::vector<float> x{3, 0}, y{2, 6};
  const NormRun hand{.values = x.data(), .elements = 2, .other = y.data(), .scale = 0.5F};
  const test::PoisonedContext one(1, squared_norms_scratch(std::span(&hand, 1)));
  double square = test::kNaN;
  squared_norms(one.exec(), std::span(&hand, 1), &square);
  EXPECT_EQ(square, 25);

  const auto a = test::random_values(9001, 5), b = test::random_values(9001, 6);
  std::vector<float> sum;
  for (size_t k = 0; k < a.size(); ++k)
    sum.push_back(static_cast<float>(static_cast<double>(a[k]) + double{0.3F} * static_cast<double>(b[k])));
  const NormRun run{.values = a.data(), .elements = 9001, .other = b.data(), .scale = 0.3F};
  const test::PoisonedContext context(2, squared_norms_scratch(std::span(&run, 1)));
  squared_norms(context.exec(), std::span(&run, 1), &square);
  EXPECT_EQ(square, norms_of({sum})[0]);
}

// 2^54 + 1 is not a double: what meets the large term alone is lost, what met others before is not.
TEST(SquaredNorm, AddsInTheOrderOfTheHeader) {
  constexpr float kLarge = 0x1p27F;  // squared 2^54, next double 4 above
  std::vector<float> x(4096, 0.0F);
  x[0] = kLarge, x[1] = 1, x[2] = x[3] = 1;  // (2^54 + 1) + (1 + 1): the pair of lanes 2 and 3 is worth 2, a tie
  EXPECT_EQ(norms_of({x})[0], 0x1p54);
  x[4] = x[5] = x[6] = x[7] = 1;  // lanes 4..7 meet first: 4 is kept
  EXPECT_EQ(norms_of({x})[0], 0x1p54 + 4);
  x.assign(512, 0.0F);
  x[0] = kLarge, x[256] = x[1] = x[257] = 1;  // lane 0 loses its second element, lane 1 brings 2, a tie
  EXPECT_EQ(norms_of({x})[0], 0x1p54);
  x.assign(4 * 4096 + 1, 0.0F);
  x[0] = kLarge, x[2 * 4096] = x[2 * 4096 + 1] = 1, x[3 * 4096] = x[3 * 4096 + 1] = 1;  // blocks 2 and 3 meet first
  EXPECT_EQ(norms_of({x})[0], 0x1p54 + 4);
  x[4 * 4096] = 2;  // block 4 has no neighbor and comes last: 4 more
  EXPECT_EQ(norms_of({x})[0], 0x1p54 + 8);
}

TEST(SquaredNorm, AgreesWithLongDouble) {
  for (const int64_t n : {1, 31, 255, 257, 4095, 4097, 50001}) {
    const auto x = test::random_values(n, 1);
    long double sum = 0;
    for (const float v : x) sum += static_cast<long double>(v) * static_cast<long double>(v);
    EXPECT_NEAR(norms_of({x})[0], static_cast<double>(sum), 1e-14 * static_cast<double>(sum)) << n;
  }
}

TEST(SquaredNorm, DoesNotDependOnThreadsOrNeighbors) {
  const auto x = test::random_values(30001, 2), y = test::random_values(777, 3);
  EXPECT_EQ(norms_of({x, y}, 1), norms_of({x, y}, 3));
  EXPECT_EQ(norms_of({y, x})[1], norms_of({x})[0]);
}

TEST(SquaredNorm, HoldsWhatFloatsCannotAndShowsNonFinite) {
  const float max = std::numeric_limits<float>::max();
  EXPECT_EQ(norms_of({{max, max}})[0], 2 * double{max} * double{max});
  EXPECT_TRUE(std::isnan(norms_of({{1, test::kNaN}})[0]));
  EXPECT_TRUE(std::isinf(norms_of({{1, -std::numeric_limits<float>::infinity()}})[0]));
}

TEST(SquaredNorm, RefusesAnArrayWithoutMemory) {
  const NormRun run{.values = nullptr, .elements = 3};
  double square = 0;
  EXPECT_THAT([&] { squared_norms(CpuExec{}, std::span(&run, 1), &square); }, test::fires("3 elements"));
}

}  // namespace
}  // namespace simclr
