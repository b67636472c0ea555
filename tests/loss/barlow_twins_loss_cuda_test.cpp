// Barlow Twins between ranks on CUDA: values from outside, and the same bits on 1, 2 and 4 ranks, which are threads that
// share one GPU.
#include "src/device/choose_device.h"
#include "src/loss/contrastive_loss.h"
#include "tests/golden/golden_support.h"
#include "tests/harness/thread_collectives.h"
#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;

constexpr DataType kFloat = DataType::kFloat32;

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

TEST(BarlowTwinsLossCuda, HasTheSameBitsOnEveryNumberOfRanks) {
  const LossShape shape{.batch = 24, .columns = 70, .shards = 8};
  const LossSettings settings{.type = LossType::kBarlowTwins, .lambda = 0.05, .scale = 0.5};
  const auto z = test::make_views(shape.batch, shape.columns, 0.3F, 4);
  const RanksRun one = run_ranks_on_gpu(z, shape, settings, 1);
  test::expect_matches_reference({one.losses[0], one.grad_z, true}, z, test::barlow_problem(3, 8, 70, 0.05, 0.5));
  for (const int ranks : {2, 4}) {
    const RanksRun more = run_ranks_on_gpu(z, shape, settings, ranks);
    EXPECT_EQ(more.losses, std::vector<double>(static_cast<size_t>(ranks), one.losses[0])) << ranks << " ranks";
    EXPECT_TRUE(test::same_bits(more.grad_z, one.grad_z)) << ranks << " ranks";
  }
}

TEST(BarlowTwinsLossCuda, MatchesTheStoredValues) {
  for (const auto& golden : test::golden_barlow_twins()) {
    for (const int ranks : {1, 2, 4}) {
      const RanksRun got =
          run_ranks_on_gpu(test::to_float(golden.z), {.batch = golden.batch, .columns = golden.columns, .shards = 4},
                           {.type = LossType::kBarlowTwins, .lambda = golden.lambda}, ranks);
      EXPECT_LE(std::abs(got.losses[0] / golden.loss - 1), 1e-5) << golden.batch << " images, " << ranks << " ranks";
      EXPECT_LE(test::relative_error(got.grad_z, test::by_shards(golden.grad_z, 4, golden.columns)), 1e-5)
          << golden.batch << " images, " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace simclr
