// Streaming InfoNCE on CUDA, and what bfloat16 products make of it: held to the plain loops in double
// by the bounds that hold the CPU, and to the same bits however shards are cut into calls.
#include "kernels/infonce_streaming/infonce_streaming.h"

#include <numbers>
#include <utility>

#include "kernels/infonce_streaming/streaming_cuda_plan.h"
#include "tests/kernels/infonce/infonce_cuda_support.h"
#include "tests/kernels/infonce_streaming/infonce_streaming_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;
using test::CudaRun;
using test::DeviceArray;
using test::normalized;
using test::problem;
using test::span_of;
using test::StreamingOutputs;

constexpr DataType kFloat = DataType::kFloat32;
// A fixed shift rounds exponents as large as 2 / tau, where einsum has those below the row's maximum.
constexpr double kSlack = 2;

// Whether a build may take so much: under ThreadSanitizer a product costs a hundred times as much, and it needs each
// path once, not each size.
constexpr bool fits(int64_t images, int64_t columns) {
  return images * images * columns <= SIMCLR_MOST_WORK;  // of CMake
}

// One call forward and `backwards` back. Every output and the scratch start as NaN. all_log_denominators [2B] by shard;
// none: the rank owns everything.
StreamingOutputs run(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride,
                     const std::vector<double>& all_log_denominators = {}, int backwards = 1) {
  const CudaRun cuda(Precision::kBf16, streaming_scratch(p, true));  // the network's precision is nothing to the loss
  const DeviceArray<std::byte> memory(streaming_saved_bytes(p));
  const StreamingSaved saved = streaming_saved(p, span_of(memory));
  const CudaMatrix e_all(kFloat, p.keys(), p.columns, stride, e, test::kNaN),  // the padding is not read
      grad_e(kFloat, p.anchors(), p.columns, stride);
  const DeviceArray<double> shard_loss(static_cast<size_t>(p.shards)), gathered(all_log_denominators);
  streaming_forward(cuda.exec(), e_all.view(), p, saved, span_of(shard_loss));
  const auto anchors = static_cast<size_t>(p.anchors());
  const std::span<const double> denominators(gathered.count() == 0 ? saved.log_denominators : gathered.data(),
                                             p.keys());
  for (int i = 0; i < backwards; ++i) {
    streaming_backward(cuda.exec(), e_all.view(), p, saved, denominators, grad_e.view());
  }
  const std::vector<std::byte> bytes = memory.download();
  const auto saved_numbers = [&](const double* from) {
    std::vector<double> numbers(anchors);
    std::memcpy(numbers.data(), &bytes[reinterpret_cast<const std::byte*>(from) - memory.data()],
                anchors * sizeof(double));
    return numbers;
  };
  return {shard_loss.download(), saved_numbers(saved.losses), saved_numbers(saved.log_denominators), grad_e.plain(),
          grad_e.padding_is_zero()};
}

void expect_matches_reference(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride) {
  test::expect_matches_reference(run(e, p, stride).as_einsum(p), e, p, kSlack);
}

// Two images at right angles, both views equal, tau = 1: N = 1 + 1, exp(l_ip) = e for every anchor.
TEST(StreamingCuda, HandNumbers) {
  const StreamingOutputs r = run({1, 0, 0, 1, 1, 0, 0, 1}, problem(2, 1, 2, 1.0), 2);
  const double e = std::numbers::e, side = 1 / (2 + e);
  for (const double loss : r.losses) EXPECT_NEAR(loss, std::log(1 + 2 / e), 1e-7);
  for (const double d : r.log_denominators) EXPECT_NEAR(d, std::log(2 + e), 1e-7);
  EXPECT_NEAR(r.shard_loss[0], 4 * std::log(1 + 2 / e), 4e-7);
  // 1/4 [ 2 negatives * (p + p) (0, 1) - 2 q (1, 0) ], p = 1/(2 + e), q = 2 p
  const float expected[8] = {-1, 1, 1, -1, -1, 1, 1, -1};
  for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(r.grad_e[k], expected[k] * side, 1e-7) << k;
}

// All logits are equal: every anchor guesses among 2B - 1 rows, and nothing pulls. The similarity of a row with itself
// is off by 6e-8 against the positive's, which is in double.
TEST(StreamingCuda, IdenticalEmbeddingsGiveTheLogOfTheirCount) {
  for (const int64_t columns : {4, 100}) {
    for (const auto& [batch, temperature] :
         std::vector<std::pair<int64_t, double>>{{2, 0.005}, {2, 100.0}, {63, 0.1}, {130, 0.005}, {130, 0.5}}) {
      if (!fits(batch, columns)) continue;
      std::vector<float> row(columns), e;
      row[0] = 1;
      if (columns > 4) row = normalized(test::random_numbers(columns, 1), columns);
      for (int64_t i = 0; i < 2 * batch; ++i) e.insert(e.end(), row.begin(), row.end());
      const StreamingOutputs r = run(e, problem(batch, 1, columns, temperature), columns);
      const double expected = std::log(static_cast<double>(2 * batch - 1));
      const double bound = 1e-7 * expected + (columns > 4 ? 6e-8 / temperature : 0);
      for (const double loss : r.losses) ASSERT_NEAR(loss, expected, bound) << batch << " " << temperature;
      for (const float g : r.grad_e) ASSERT_NEAR(g * temperature, 0, bound);
    }
  }
}

// Tiles have 64 rows and 32 columns, chunks 128 columns of e, a block's registers 4 of them; spans begin at 128
// columns.
TEST(StreamingCuda, MatchesTheReferenceForAllShapes) {
  struct Shape {
    int64_t n, shards, columns;
  };
  for (const auto& [n, shards, columns] : std::vector<Shape>{{2, 1, 1},
                                                             {1, 2, 3},
                                                             {3, 1, 17},
                                                             {1, 8, 127},
                                                             {31, 1, 3},
                                                             {31, 1, 128},
                                                             {65, 1, 17},
                                                             {65, 1, 128},
                                                             {5, 4, 130},
                                                             {16, 2, 256},
                                                             {17, 1, 512},
                                                             {3, 1, 600},
                                                             {129, 1, 1},
                                                             {129, 1, 12}}) {
    if (!fits(n * shards, columns)) continue;
    const auto e = normalized(test::make_views(n * shards, columns, 0.5F, 1), columns);
    expect_matches_reference(e, problem(n, shards, columns), columns);
    if (n * shards > 100) continue;
    expect_matches_reference(e, problem(n, shards, columns, 0.2, 0.3), round_up(columns, 16) + 8);
    expect_matches_reference(e, problem(n, shards, columns, 0.013, 0.3), columns);  // a maximum for each row
  }
}

// 32 column tiles in 8 spans, with a maximum for each row that spans have to agree on.
TEST(StreamingCuda, MatchesTheReferenceWithAThousandRows) {
  if (!fits(500, 8)) GTEST_SKIP() << "too slow in this build";
  const auto e = normalized(test::make_views(500, 8, 0.5F, 1), 8);
  expect_matches_reference(e, problem(125, 4, 8), 8);
  expect_matches_reference(e, problem(125, 4, 8, 0.013), 8);
}

TEST(StreamingCuda, SurvivesExtremes) {
  for (const double temperature : {0.005, 0.0232, 0.0233, 0.05, 100.0}) {  // the shift is fixed from 0.02326 on
    for (const double margin : {0.0, 0.2, 1.999}) {
      const InfoNceProblem p = problem(5, 2, 16, temperature, margin);
      for (const auto& e : test::extreme_rows()) {
        expect_matches_reference(e, p, 16);
        InfoNceProblem decoupled = p;
        decoupled.decoupled = margin == 0;
        if (decoupled.decoupled) expect_matches_reference(e, decoupled, 16);
      }
    }
  }
}

TEST(StreamingCuda, TakesRowsOfAnyLength) {
  constexpr int64_t kColumns = 6;
  std::vector<float> z = test::make_views(8, kColumns, 0.3F, 3);
  const float factor[4] = {1e20F, 1e-20F, 0.0F, 1e-9F};
  for (int row = 0; row < 4; ++row) {
    for (int64_t c = 0; c < kColumns; ++c) z[row * kColumns + c] *= factor[row];
  }
  const test::CudaMeasured got = test::measure_on_cuda(z, problem(8, 1, kColumns, 0.1), true);
  const InfoNceReference expected =
      infonce_reference(test::to_double(z), {.batch = 8, .columns = kColumns, .temperature = 0.1, .margin = 0});
  EXPECT_LE(std::abs(got.loss / expected.loss - 1), 1e-6);
  for (int64_t row = 0; row < 16; ++row) {  // row by row: their lengths span forty orders of magnitude
    const std::vector<float> actual(&got.grad_z[row * kColumns], &got.grad_z[row * kColumns] + kColumns);
    const std::vector<double> wanted(&expected.grad_z[row * kColumns], &expected.grad_z[row * kColumns] + kColumns);
    if (test::norm(wanted) == 0) {
      EXPECT_EQ(actual, std::vector<float>(kColumns, 0.0F)) << row;
    } else {
      EXPECT_LE(test::relative_error(actual, wanted), 1e-5) << row;
    }
  }
}

// Rank r of W owns S/W shards: each of its numbers has the bits that the rank which owns everything gets.
TEST(StreamingCuda, BitsDoNotDependOnTheShardsOwned) {
  constexpr int64_t kColumns = 19, kShards = 8;
  for (const DataType products : {DataType::kFloat32, DataType::kBfloat16}) {
    for (const auto& [images, temperature] :
         std::vector<std::pair<int64_t, double>>{{5, 0.1}, {5, 0.01}, {19, 0.1}, {19, 0.01}}) {
      if (!fits(images * kShards, kColumns)) continue;
      const auto e = normalized(test::make_views(images * kShards, kColumns, 0.3F, 7), kColumns);
      InfoNceProblem p = problem(images, kShards, kColumns, temperature);
      p.products = products;
      const StreamingOutputs whole = run(e, p, 32);
      for (const int64_t owned : {1, 4}) {
        for (int64_t first = 0; first < kShards; first += owned) {
          p.shards = owned;
          p.first_shard = first;
          const StreamingOutputs part = run(e, p, 32, whole.log_denominators);
          const int64_t rows = 2 * images * first;
          const auto expect_part = [&](const auto& of_part, const auto& of_whole, int64_t width) {
            EXPECT_EQ(of_part, std::vector(&of_whole[rows * width], &of_whole[rows * width] + p.anchors() * width));
          };
          expect_part(part.losses, whole.losses, 1);
          expect_part(part.log_denominators, whole.log_denominators, 1);
          expect_part(part.grad_e, whole.grad_e, kColumns);
          EXPECT_EQ(part.shard_loss, std::vector(&whole.shard_loss[first], &whole.shard_loss[first] + owned));
        }
      }
    }
  }
}

TEST(StreamingCuda, RunsBackwardTwiceOnWhatForwardLeft) {
  const auto e = normalized(test::make_views(40, 130, 0.3F, 8), 130);
  EXPECT_EQ(run(e, problem(20, 2, 130), 130).grad_e, run(e, problem(20, 2, 130), 130, {}, 2).grad_e);
}

TEST(StreamingCuda, ShowsNonFiniteInput) {
  for (const double temperature : {0.5, 0.01}) {
    for (const int64_t batch : {4, 65}) {  // the last row is then all that row 64 sees of the last tile
      auto e = normalized(test::make_views(batch, 8, 0.3F, 9), 8);
      e.back() = test::kNaN;
      const StreamingOutputs r = run(e, problem(batch, 1, 8, temperature), 8);
      for (const double loss : r.losses) EXPECT_TRUE(std::isnan(loss)) << batch;
    }
  }
}

// Where 1 - p of the positive would keep no digit. The largest rows of a test on the emulator; the CPU has 4,096.
TEST(StreamingCuda, GradientIsWithin5e7OfDouble) {
  for (const double cosine : {0.73, 0.9, 0.98}) {
    for (const double temperature : {0.5, 0.1, 0.05}) {
      const int64_t batch = temperature < 0.1 && cosine > 0.95 ? 256 : 64;
      if (!fits(batch, 128)) GTEST_SKIP() << "too slow in this build";
      const auto noise = static_cast<float>(std::sqrt(1 / (cosine * cosine) - 1));
      const auto e = normalized(test::make_views(batch, 128, noise, 11), 128);
      const InfoNceProblem p = problem(batch, 1, 128, temperature);
      const StreamingOutputs got = run(e, p, 128);
      const InfoNceReference expected = infonce_reference_from_embeddings(
          test::to_double(e), {.batch = batch, .columns = 128, .temperature = temperature, .margin = 0});
      const double grad_error = test::relative_error(got.grad_e, expected.grad_e);
      const double loss_error = std::abs(got.shard_loss[0] / static_cast<double>(p.keys()) / expected.loss - 1);
      fmt::print("2B {} cosine {:<4} tau {:<4} loss {:.3e}: relative error of loss {:.1e}, dL/de {:.1e}\n", 2 * batch,
                 cosine, temperature, expected.loss, loss_error, grad_error);
      EXPECT_LE(grad_error, 5e-7);
      EXPECT_LE(loss_error, 3e-7);
    }
  }
}

// Rounding a factor to bfloat16 changes it by 2^-9 at most, so a similarity of unit rows changes by less than 2^-8 +
// 2^-18, the loss by that over tau at most; a weight p by twice that, relatively, and by its own rounding, and so does
// what it multiplies: `bound` of the sum of all weights, which is at most twice the pull of the positives.
TEST(StreamingCuda, Bfloat16ProductsAreAsGoodAsTheirFactors) {
  for (const double temperature : {0.5, 0.1, 0.02}) {
    constexpr int64_t kBatch = 70, kColumns = 130;
    if (!fits(kBatch, kColumns)) GTEST_SKIP() << "too slow in this build";
    const auto e = normalized(test::make_views(kBatch, kColumns, 0.5F, 1), kColumns);
    InfoNceProblem p = problem(kBatch, 1, kColumns, temperature);
    p.products = DataType::kBfloat16;
    const StreamingOutputs got = run(e, p, kColumns);
    const InfoNceReference expected = infonce_reference_from_embeddings(
        test::to_double(e), {.batch = kBatch, .columns = kColumns, .temperature = temperature, .margin = 0});
    const double of_similarity = 0x1p-8 + 0x1p-18, loss = got.shard_loss[0] / static_cast<double>(p.keys());
    EXPECT_LE(std::abs(loss - expected.loss), of_similarity / temperature);
    EXPECT_GT(std::abs(loss - expected.loss), 1e-6 * expected.loss);  // it is another path
    const double bound = std::expm1(2 * of_similarity / temperature) + 0x1p-8;
    std::vector<double> error = test::to_double(got.grad_e);
    for (size_t k = 0; k < error.size(); ++k) error[k] -= expected.grad_e[k];
    fmt::print("bfloat16, tau {:<4}: loss {:.4f} off by {:.1e}, dL/de by {:.1e} of its length\n", temperature,
               expected.loss, loss - expected.loss, test::norm(error) / test::norm(expected.grad_e));
    EXPECT_LE(test::norm(error), 2 * bound * test::pull_of_positives(expected, p));
    EXPECT_LE(test::norm(error), 0.1 * test::norm(expected.grad_e));
    EXPECT_TRUE(got.padding_is_zero);
  }
}

TEST(StreamingCuda, Bfloat16ProductsAreForCudasStreamingAlone) {
  InfoNceProblem p = problem(2, 1, 4);
  p.products = DataType::kBfloat16;
  const auto e = normalized(test::make_views(2, 4, 0.3F, 1), 4);
  EXPECT_THROW(test::run_streaming(e, p, 4), Error);
  EXPECT_THROW(test::measure_on_cuda(e, p, false), Error);
}

TEST(StreamingCuda, MemoryGrowsWithRowsNotWithTheirSquare) {
  const InfoNceProblem p = problem(8192, 1, 128);
  EXPECT_LE(streaming_scratch(p, true).workspace_bytes, 68'000'000U);
  EXPECT_EQ(streaming_scratch(p, true).thread_bytes, 0U);
  EXPECT_EQ(detail::StreamingCudaPlan(p).spans, 8);
}

}  // namespace
}  // namespace simclr
