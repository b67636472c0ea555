// Barlow Twins on CUDA: held to the plain loops in double by the bounds that hold the CPU.
#include <utility>

#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::barlow_problem;
using test::BarlowTwinsOutputs;
using test::CudaMatrix;
using test::CudaRun;
using test::DeviceArray;

constexpr DataType kFloat = DataType::kFloat32;

// One rank that owns all shards. Every output and the scratch start as NaN. z in the global order.
BarlowTwinsOutputs run(const std::vector<float>& z, const BarlowTwinsProblem& p, int64_t stride,
                       DataType type = kFloat) {
  const CudaRun cuda(Precision::kTf32, barlow_twins_scratch(p));  // products are fp32 whatever the network is
  const Exec& exec = cuda.exec();
  const auto columns = static_cast<size_t>(p.columns);
  const CudaMatrix z_in(type, p.rows(), p.columns, stride, test::by_shards(z, p.shards, p.columns), test::kNaN);
  const CudaMatrix y(kFloat, p.rows(), p.columns, round_up(p.columns, 64)), grad_z(type, p.rows(), p.columns, stride);
  const DeviceArray<double> sums(2 * columns), squares(2 * columns), inv_std(2 * columns), radial(2 * columns), loss(1);
  const DeviceArray<float> products(columns * columns);
  barlow_twins_sums(exec, z_in.view(), p, sums.data());
  barlow_twins_square_sums(exec, z_in.view(), p, sums.data(), squares.data());
  barlow_twins_standardize(exec, z_in.view(), p, sums.data(), squares.data(), y.view(), inv_std.data());
  barlow_twins_products(exec, y.view(), p, products.data());
  barlow_twins_loss(exec, p, products.data(), radial.data(), loss.data());
  barlow_twins_backward(exec, y.view(), p, products.data(), inv_std.data(), radial.data(), grad_z.view());
  return {loss.download()[0], grad_z.plain(), grad_z.padding_is_zero()};
}

TEST(BarlowTwinsCuda, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 31, 64, 130}) {
    for (const auto& [n, shards] : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 8}, {3, 4}, {33, 2}}) {
      const BarlowTwinsProblem p = barlow_problem(n, shards, columns, 0.05);
      const auto z = test::make_views(p.batch, columns, 0.5F, 1);
      test::expect_matches_reference(run(z, p, padded_cols(columns) + (n == 1 ? 0 : 40)), z, p);
    }
  }
}

// The correlation is made in more than one block of rows, and a row is longer than a block has threads.
TEST(BarlowTwinsCuda, MatchesTheReferenceForManyColumns) {
  const BarlowTwinsProblem p = barlow_problem(2, 4, 2050);
  const auto z = test::make_views(p.batch, p.columns, 0.5F, 2);
  test::expect_matches_reference(run(z, p, 2064), z, p);
}

TEST(BarlowTwinsCuda, SurvivesExtremes) {
  for (const auto& extreme : test::barlow_extremes()) {
    SCOPED_TRACE(extreme.name);
    test::expect_matches_reference(run(extreme.z, extreme.problem, padded_cols(extreme.problem.columns)), extreme.z,
                                   extreme.problem);
  }
  const BarlowTwinsOutputs constant = run(std::vector<float>(64, 0.1F), barlow_problem(4, 8, 1), 8);
  EXPECT_EQ(constant.loss, 1);  // c = 0
  EXPECT_EQ(constant.grad_z, std::vector<float>(64, 0.0F));
}

TEST(BarlowTwinsCuda, ShowsNonFiniteInput) {
  const BarlowTwinsProblem p = barlow_problem(3, 2, 5);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto z = test::make_views(p.batch, p.columns, 0.3F, 9);
    z[17] = bad;
    EXPECT_TRUE(std::isnan(run(z, p, 8).loss)) << bad;
  }
}

// bfloat16 is how the network stores z and its gradient; the loss between them computes as it does with floats.
TEST(BarlowTwinsCuda, TakesAndGivesBfloat16) {
  constexpr DataType kBf16 = DataType::kBfloat16;
  const BarlowTwinsProblem p = barlow_problem(5, 4, 37);
  const auto z = test::as_stored(kBf16, test::make_views(p.batch, p.columns, 0.5F, 3));
  const BarlowTwinsOutputs floats = run(z, p, 40), stored = run(z, p, 40, kBf16);
  EXPECT_EQ(stored.loss, floats.loss);
  EXPECT_TRUE(test::same_bits(stored.grad_z, test::as_stored(kBf16, floats.grad_z)));
  EXPECT_TRUE(stored.padding_is_zero);
}

// Another order of eight doubles is seldom seen in y: what ranks add up is looked at itself.
TEST(BarlowTwinsCuda, SumsShardsInTreeOrder) {
  const BarlowTwinsProblem p = barlow_problem(5, 8, 40);
  BarlowTwinsProblem one = p;
  one.shards = 1;
  const CudaRun cuda(Precision::kFp32, barlow_twins_scratch(p));
  const CudaMatrix z(kFloat, p.rows(), 40, 40, test::make_views(p.batch, 40, 0.3F, 8));
  const DeviceArray<double> sums(80), squares(80);
  barlow_twins_sums(cuda.exec(), z.view(), p, sums.data());
  barlow_twins_square_sums(cuda.exec(), z.view(), p, sums.data(), squares.data());
  std::vector<double> d[8];
  for (int64_t s = 0; s < 8; ++s) {
    const DeviceArray<double> part(80);
    barlow_twins_square_sums(cuda.exec(), z.view().slice(s * one.rows(), one.rows()), one, sums.data(), part.data());
    d[s] = part.download();
  }
  const std::vector<double> whole = squares.download();
  for (size_t k = 0; k < whole.size(); ++k) {
    ASSERT_EQ(whole[k], ((d[0][k] + d[1][k]) + (d[2][k] + d[3][k])) + ((d[4][k] + d[5][k]) + (d[6][k] + d[7][k])));
  }
}

}  // namespace
}  // namespace simclr
