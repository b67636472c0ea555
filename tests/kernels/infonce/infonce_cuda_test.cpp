// InfoNCE on CUDA: held to the plain loops in double by the bounds that hold the CPU, to values from outside, and to
// the same bits however shards are cut into calls.
#include "kernels/infonce/infonce.h"

#include <utility>

#include "tests/golden/golden_support.h"
#include "tests/kernels/infonce/infonce_cuda_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;
using test::CudaRun;
using test::DeviceArray;
using test::InfoNceOutputs;
using test::normalized;
using test::problem;
using test::span_of;

constexpr DataType kFloat = DataType::kFloat32;

// One call forward and one back. Every output and the scratch start as NaN.
class CudaInfoNce {
 public:
  CudaInfoNce(const CudaRun& run, const std::vector<float>& e, const InfoNceProblem& p, int64_t stride)
      : run_(run),
        p_(p),
        memory_(infonce_saved_bytes(p)),
        saved_(infonce_saved(p, span_of(memory_))),
        e_all_(kFloat, p.keys(), p.columns, stride, e, test::kNaN),  // the padding is not read
        grad_anchors_(kFloat, p.anchors(), p.columns, stride),
        grad_keys_(kFloat, p.keys(), p.columns, stride),
        shard_loss_(static_cast<size_t>(p.shards)) {}

  void forward() { infonce_forward(run_.exec(), e_all_.view(), p_, saved_, span_of(shard_loss_)); }
  void backward() { infonce_backward(run_.exec(), e_all_.view(), p_, saved_, grad_anchors_.view(), grad_keys_.view()); }
  InfoNceOutputs read() const {
    const std::vector<std::byte> bytes = memory_.download();
    std::vector<double> losses(p_.anchors());
    std::memcpy(losses.data(), &bytes[reinterpret_cast<std::byte*>(saved_.losses) - memory_.data()],
                losses.size() * sizeof(double));
    return {shard_loss_.download(), losses, grad_anchors_.plain(), grad_keys_.plain(),
            grad_anchors_.padding_is_zero() && grad_keys_.padding_is_zero()};
  }

 private:
  const CudaRun& run_;
  InfoNceProblem p_;
  DeviceArray<std::byte> memory_;
  InfoNceSaved saved_;
  CudaMatrix e_all_, grad_anchors_, grad_keys_;
  DeviceArray<double> shard_loss_;
};

InfoNceOutputs run(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  const CudaRun cuda(Precision::kTf32, infonce_scratch(p));  // the loss is single precision whatever the network is
  CudaInfoNce op(cuda, e, p, stride);
  op.forward();
  op.backward();
  return op.read();
}

void expect_matches_reference(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  test::expect_matches_reference(run(e, p, stride), e, p);
}

TEST(InfoNceCuda, MatchesTheReferenceForAllShapes) {
  for (const int64_t columns : {1, 3, 127, 128}) {
    for (const auto& [n, shards] : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 8}, {3, 4}, {17, 1}}) {
      const auto e = normalized(test::make_views(n * shards, columns, 0.5F, 1), columns);
      expect_matches_reference(e, problem(n, shards, columns), columns);
      if (columns % 2 == 0) continue;
      expect_matches_reference(e, problem(n, shards, columns, 0.2, 0.3), padded_cols(columns) + 8);
    }
  }
}

// 2B = 272 columns: more than a block has threads, and no multiple of it.
TEST(InfoNceCuda, MatchesTheReferenceWhereARowIsLongerThanABlock) {
  const auto e = normalized(test::make_views(136, 17, 0.5F, 1), 17);
  expect_matches_reference(e, problem(34, 4, 17), 17);
}

TEST(InfoNceCuda, SurvivesExtremes) {
  for (const auto& [temperature, margin] :
       std::vector<std::pair<double, double>>{{0.005, 0.0}, {0.005, 1.9}, {0.05, 0.2}, {100.0, 0.0}}) {
    const InfoNceProblem p = problem(5, 2, 16, temperature, margin);
    for (const auto& e : test::extreme_rows()) expect_matches_reference(e, p, 16);
  }
}

// Rank r of W owns S/W shards: each of its numbers has the bits that the rank which owns everything gets.
TEST(InfoNceCuda, BitsDoNotDependOnTheShardsOwned) {
  constexpr int64_t kColumns = 19, kImages = 5, kShards = 8;
  const auto e = normalized(test::make_views(kImages * kShards, kColumns, 0.3F, 7), kColumns);
  const InfoNceOutputs whole = run(e, problem(kImages, kShards, kColumns), 32);
  std::vector<std::vector<float>> k;
  for (int64_t shard = 0; shard < kShards; ++shard) {
    InfoNceProblem p = problem(kImages, kShards, kColumns);
    p.shards = 1;
    p.first_shard = shard;
    const InfoNceOutputs one = run(e, p, 32);
    EXPECT_EQ(one.shard_loss[0], whole.shard_loss[shard]);
    const int64_t anchors = p.anchors(), elements = anchors * kColumns;
    EXPECT_EQ(one.losses,
              std::vector<double>(&whole.losses[shard * anchors], &whole.losses[shard * anchors] + anchors));
    EXPECT_EQ(one.grad_anchors, std::vector<float>(&whole.grad_anchors[shard * elements],
                                                   &whole.grad_anchors[shard * elements] + elements));
    k.push_back(one.grad_keys);
  }
  for (size_t i = 0; i < whole.grad_keys.size(); ++i) {
    ASSERT_EQ(whole.grad_keys[i],
              ((k[0][i] + k[1][i]) + (k[2][i] + k[3][i])) + ((k[4][i] + k[5][i]) + (k[6][i] + k[7][i])));
  }
}

TEST(InfoNceCuda, RunsBackwardTwiceOnWhatForwardLeft) {
  const InfoNceProblem p = problem(4, 2, 8);
  const CudaRun cuda(Precision::kFp32, infonce_scratch(p));
  CudaInfoNce op(cuda, normalized(test::make_views(8, 8, 0.3F, 8), 8), p, 8);
  op.forward();
  op.backward();
  const InfoNceOutputs first = op.read();
  op.backward();
  EXPECT_EQ(op.read().grad_anchors, first.grad_anchors);
  EXPECT_EQ(op.read().grad_keys, first.grad_keys);
}

TEST(InfoNceCuda, ShowsNonFiniteInput) {
  auto e = normalized(test::make_views(4, 8, 0.3F, 9), 8);
  e[5] = test::kNaN;
  for (const double loss : run(e, problem(4, 1, 8), 8).losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(InfoNceCuda, MeanLoss) {
  const CudaRun cuda(Precision::kFp32, {});
  const DeviceArray<double> total(std::vector<double>{3}), loss(1);
  infonce_mean_loss(cuda.exec(), total.data(), 8, loss.data());
  EXPECT_EQ(loss.download()[0], 0.375);
}

// Where 1 - p of the positive would keep no digit: the rule of the CPU, with the same bounds.
TEST(InfoNceCuda, IsAccurateForAlignedViewsAtLowTemperature) {
  constexpr int64_t kBatch = 96;
  const std::vector<float> z = test::make_views(kBatch, 128, 0.2F, 11);
  for (const double temperature : {0.5, 0.05}) {
    const InfoNceReferenceSettings settings{.batch = kBatch, .columns = 128, .temperature = temperature};
    const test::CudaMeasured got = test::measure_on_cuda(z, problem(kBatch, 1, 128, temperature), false);
    const double loss = infonce_reference_from_embeddings(test::to_double(got.e), settings).loss;
    const double loss_error = std::abs(got.loss / loss - 1);
    const double grad_error = test::relative_error(got.grad_z, infonce_reference(test::to_double(z), settings).grad_z);
    fmt::print("tau {:<5} relative error of loss {:.1e}, dL/dz {:.1e}\n", temperature, loss_error, grad_error);
    EXPECT_LE(loss_error, 3e-8);  // a float similarity is off by 3e-8 / tau; over rows and columns that averages out
    EXPECT_LE(grad_error, 1e-6);
  }
}

TEST(InfoNceCuda, MatchesTheStoredValues) {
  for (const auto& golden : test::golden_infonce()) {
    const InfoNceProblem p = problem(golden.batch, 1, golden.columns, golden.temperature, golden.margin);
    for (const bool streaming : {false, true}) {
      const test::CudaMeasured got = test::measure_on_cuda(test::to_float(golden.z), p, streaming);
      EXPECT_LE(std::abs(got.loss / golden.loss - 1), test::tolerance(p))
          << "B=" << p.batch << " tau=" << p.temperature;
      EXPECT_LE(test::relative_error(got.grad_z, golden.grad_z), test::tolerance(p))
          << "B=" << p.batch << " tau=" << p.temperature;
    }
  }
}

}  // namespace
}  // namespace simclr
