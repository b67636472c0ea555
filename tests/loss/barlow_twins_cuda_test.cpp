// Barlow Twins on CUDA: held to the plain loops in double by the bounds that hold the CPU, to values from outside, and
// to the same bits on 1, 2 and 4 ranks, which are threads that share one GPU.
#include <utility>

#include "src/device/choose_device.h"
#include "src/loss/contrastive_loss.h"
#include "tests/harness/thread_collectives.h"
#include "tests/kernels/cuda_support.h"
#include "tests/loss/barlow_twins_stored.h"
#include "tests/loss/barlow_twins_support.h"

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

// ---- ranks ----

// Collectives of host memory for ranks whose memory is a GPU's.
class OverHost : public ForwardingCollectives {
 public:
  OverHost(Collectives& inner, Device& device) : ForwardingCollectives(inner), device_(device) {}
  void ordered_sum(TypedSpan data) override {
    const size_t size = data.type == ElementType::kFloat32 ? sizeof(float) : sizeof(double);
    std::vector<double> host((static_cast<size_t>(data.count) * size + sizeof(double) - 1) / sizeof(double));
    device_.download(host.data(), data.data, static_cast<size_t>(data.count) * size);
    inner().ordered_sum(TypedSpan(host.data(), data.count, data.type));
    device_.upload(data.data, host.data(), static_cast<size_t>(data.count) * size);
  }

 private:
  Device& device_;
};

struct RanksRun {
  std::vector<double> losses;
  std::vector<float> grad_z;  // [2B, C], by shards
};

RanksRun run_ranks_on_gpu(const std::vector<float>& z, const LossShape& shape, const LossSettings& settings,
                          int ranks) {
  const std::vector<float> z_by_shards = test::by_shards(z, shape.shards, shape.columns);
  const int64_t rows = 2 * shape.batch / ranks, stride = padded_cols(shape.columns), elements = rows * shape.columns;
  RanksRun out{.losses = std::vector<double>(static_cast<size_t>(ranks), NAN), .grad_z = z};
  run_ranks(ranks, [&](Collectives& host) {
    Context context(make_cuda_device({}));
    OverHost collectives(host, context.device());
    const auto loss = make_loss(context, collectives, settings, shape);
    const size_t before = context.allocated_bytes();
    const CudaMatrix z_in(kFloat, rows, shape.columns, stride,
                          std::span(z_by_shards).subspan(host.rank() * elements, elements));
    const CudaMatrix grad_z(kFloat, rows, shape.columns, stride);
    const double* value = loss->forward(z_in.view());
    loss->backward(grad_z.view());
    context.device().download(&out.losses[host.rank()], value, sizeof(double));
    std::ranges::copy(grad_z.plain(), out.grad_z.begin() + host.rank() * elements);
    EXPECT_TRUE(grad_z.padding_is_zero());
    EXPECT_EQ(context.allocated_bytes(), before);  // no memory is taken within a step
  });
  return out;
}

TEST(BarlowTwinsCuda, HasTheSameBitsOnEveryNumberOfRanks) {
  const LossShape shape{.batch = 24, .columns = 70, .shards = 8};
  const LossSettings settings{.type = LossType::kBarlowTwins, .lambda = 0.05, .scale = 0.5};
  const auto z = test::make_views(shape.batch, shape.columns, 0.3F, 4);
  const RanksRun one = run_ranks_on_gpu(z, shape, settings, 1);
  test::expect_matches_reference({one.losses[0], one.grad_z, true}, z, barlow_problem(3, 8, 70, 0.05, 0.5));
  for (const int ranks : {2, 4}) {
    const RanksRun more = run_ranks_on_gpu(z, shape, settings, ranks);
    EXPECT_EQ(more.losses, std::vector<double>(static_cast<size_t>(ranks), one.losses[0])) << ranks << " ranks";
    EXPECT_TRUE(test::same_bits(more.grad_z, one.grad_z)) << ranks << " ranks";
  }
}

TEST(BarlowTwinsCuda, MatchesTheStoredValues) {
  const auto cases = test::stored_barlow_twins();
  if (!cases) GTEST_SKIP() << "SIMCLR_SHARED is not set: no reference values";
  for (const auto& one : *cases) {
    for (const int ranks : {1, 2, 4}) {
      const RanksRun got =
          run_ranks_on_gpu({one.z.begin(), one.z.end()}, {.batch = one.batch, .columns = one.columns, .shards = 4},
                           {.type = LossType::kBarlowTwins, .lambda = one.lambda}, ranks);
      EXPECT_LE(std::abs(got.losses[0] / one.loss - 1), 1e-5) << one.batch << " images, " << ranks << " ranks";
      EXPECT_LE(test::relative_error(got.grad_z, test::reference_by_shards(one.grad_z, 4, one.columns)), 1e-5)
          << one.batch << " images, " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace simclr
