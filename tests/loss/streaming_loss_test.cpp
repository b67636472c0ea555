// The distributed streaming loss: the same bits on 1, 2, 4 and 8 ranks, the numbers of einsum, what it sends, and the
// contract of its interface.
#include <gtest/gtest.h>

#include "kernels/infonce/infonce_ref.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

using test::LossRun;
using test::run_loss;
using test::TestMatrix;

LossSettings streaming(double temperature, double margin = 0) {
  return {.algorithm = LossAlgorithm::kStreaming, .temperature = temperature, .margin = margin};
}

TEST(StreamingLoss, HasTheSameBitsOnEveryNumberOfRanks) {
  for (const double temperature : {0.1, 0.01}) {
    for (const auto& [images, columns] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {5, 16}, {33, 17}, {64, 128}}) {
      const LossShape shape{.batch = 8 * images, .columns = columns, .shards = 8};
      const std::vector<float> z = test::make_views(shape.batch, columns, 0.3F, 1);
      const LossRun one = run_loss(z, shape, streaming(temperature, 0.1), {.ranks = 1});
      for (const int ranks : {1, 2, 4, 8}) {
        for (const int threads : {1, 2}) {
          const LossRun run =
              run_loss(z, shape, streaming(temperature, 0.1), {.ranks = ranks, .threads = threads, .padding = 7});
          EXPECT_EQ(run.losses, std::vector<double>(ranks, one.losses[0])) << ranks << " ranks";
          EXPECT_EQ(run.grad_z, one.grad_z) << ranks << " ranks, " << threads << " threads";
          EXPECT_TRUE(run.padding_is_zero);
        }
      }
    }
  }
}

TEST(StreamingLoss, GivesTheNumbersOfEinsum) {
  for (const double temperature : {0.5, 0.1}) {
    for (const auto& [batch, columns, noise] :
         std::vector<std::tuple<int64_t, int64_t, float>>{{2, 5, 0.3F}, {36, 16, 0.2F}, {256, 128, 0.9F}}) {
      for (const double margin : {0.0, 0.2}) {
        const LossShape shape{.batch = batch, .columns = columns, .shards = 2};
        const std::vector<float> z = test::make_views(batch, columns, noise, 2);
        LossSettings einsum = streaming(temperature, margin);
        einsum.algorithm = LossAlgorithm::kEinsum;
        const LossRun expected = run_loss(z, shape, einsum, {.ranks = 2});
        const LossRun run = run_loss(z, shape, streaming(temperature, margin), {.ranks = 2});
        EXPECT_LE(std::abs(run.losses[0] / expected.losses[0] - 1), 1e-6);
        EXPECT_LE(test::relative_error(run.grad_z, test::to_double(expected.grad_z)), 1e-6)
            << batch << " " << temperature;
      }
    }
  }
}

TEST(StreamingLoss, TakesRowsOfAnyLength) {
  constexpr int64_t kColumns = 6;
  const LossShape shape{.batch = 8, .columns = kColumns, .shards = 1};
  std::vector<float> z = test::make_views(8, kColumns, 0.3F, 3);
  const float factor[4] = {1e20F, 1e-20F, 0.0F, 1e-9F};
  for (int row = 0; row < 4; ++row) {
    for (int64_t c = 0; c < kColumns; ++c) z[row * kColumns + c] *= factor[row];
  }
  const LossRun run = run_loss(z, shape, streaming(0.1), {.ranks = 1});
  const InfoNceReference expected =
      infonce_reference(test::to_double(z), {.batch = 8, .columns = kColumns, .temperature = 0.1, .margin = 0});
  EXPECT_LE(std::abs(run.losses[0] / expected.loss - 1), 1e-6);
  for (int64_t row = 0; row < 16; ++row) {  // row by row: their lengths span forty orders of magnitude
    const std::vector<float> actual(&run.grad_z[row * kColumns], &run.grad_z[row * kColumns] + kColumns);
    const std::vector<double> wanted(&expected.grad_z[row * kColumns], &expected.grad_z[row * kColumns] + kColumns);
    if (test::norm(wanted) == 0) {
      EXPECT_EQ(actual, std::vector<float>(kColumns, 0.0F)) << row;
    } else {
      EXPECT_LE(test::relative_error(actual, wanted), 1e-5) << row;
    }
  }
}

// Bytes that a rank sends where every part goes straight to who needs it.
class CountingCollectives : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    sent += (size() - 1) * bytes(send);
    ForwardingCollectives::all_gather(send, receive);
  }
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    sent += bytes(send) / size() * (size() - 1);
    ForwardingCollectives::reduce_scatter(send, receive);
  }
  int64_t sent = 0;

 private:
  static int64_t bytes(const ConstTypedSpan& s) {
    return s.count * static_cast<int64_t>(s.type == ElementType::kFloat64 ? sizeof(double) : sizeof(float));
  }
};

TEST(StreamingLoss, SendsEmbeddingsAndOneNumberOfEachRow) {
  const LossShape shape{.batch = 2048, .columns = 128, .shards = 4};
  const int64_t keys = 2 * shape.batch, embeddings = 3 * keys / 4 * shape.columns * 4;
  for (const auto& [algorithm, expected] : std::vector<std::pair<LossAlgorithm, int64_t>>{
           {LossAlgorithm::kEinsum, 2 * embeddings}, {LossAlgorithm::kStreaming, embeddings + 3 * keys / 4 * 8}}) {
    LossSettings settings = streaming(0.5);
    settings.algorithm = algorithm;
    const int64_t wanted = expected;
    run_ranks(4, [&](Collectives& real) {
      CountingCollectives counting(real);
      Context context(1);
      const auto loss = make_loss(context, counting, settings, shape);
      const int64_t rows = 2 * shape.batch / 4;
      TestMatrix z(test::random_numbers(rows * shape.columns, 5), rows, shape.columns, shape.columns);
      TestMatrix grad_z(rows, shape.columns);
      loss->forward(z.view());
      loss->backward(grad_z.view());
      EXPECT_EQ(counting.sent, wanted);
    });
  }
}

TEST(StreamingLoss, RunsStepAfterStepOnOnesMemory) {
  const LossShape shape{.batch = 16, .columns = 8, .shards = 4};
  const auto first = test::make_views(16, 8, 0.3F, 4), second = test::make_views(16, 8, 0.3F, 5);
  const LossRun expected = run_loss(second, shape, streaming(0.2), {});
  run_ranks(1, [&](Collectives& collectives) {
    Context context(1);
    const auto loss = make_loss(context, collectives, streaming(0.2), shape);
    const size_t before = context.allocated_bytes();
    TestMatrix grad_z(32, 8);
    for (const auto& z : {first, second}) {
      TestMatrix z_in(test::by_shards(z, 4, 8), 32, 8, 8);
      const double value = *loss->forward(z_in.view());
      loss->backward(grad_z.view());
      EXPECT_EQ(value == expected.losses[0], z == second);
    }
    EXPECT_EQ(grad_z.dense(), expected.grad_z);
    EXPECT_EQ(context.allocated_bytes(), before);         // no memory is taken within a step
    const auto& cpu = std::get<CpuExec>(context.exec());  // one thread
    EXPECT_EQ(loss->memory_bytes() + cpu.workspace_bytes + cpu.thread_scratch_bytes, before);
    EXPECT_EQ(loss->describe(), "B=16 images, 2 views, 1 rank x 16: 1 positive and 30 negatives per anchor");
  });
}

// 1,024 rows: einsum stores 4 MB of exponentials alone.
TEST(StreamingLoss, HoldsNoLogits) {
  run_ranks(1, [](Collectives& collectives) {
    Context context(1);
    make_loss(context, collectives, streaming(0.5), {.batch = 512, .columns = 16, .shards = 8});
    EXPECT_LE(context.allocated_bytes(), 1'000'000U);
  });
}

TEST(StreamingLoss, ShowsNonFiniteInputOnEveryRank) {
  std::vector<float> z = test::make_views(8, 4, 0.3F, 6);
  z[4 * 3] = test::kNan;
  const LossRun run = run_loss(z, {.batch = 8, .columns = 4, .shards = 4}, streaming(0.5), {.ranks = 4});
  for (const double loss : run.losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(StreamingLoss, RefusesCallsThatAreDefects) {
  run_ranks(2, [](Collectives& collectives) {
    Context context(1);
    EXPECT_THROW(make_loss(context, collectives, streaming(0.5), {.batch = 8, .columns = 4, .shards = 1}), Error);
    const auto loss = make_loss(context, collectives, streaming(0.5), {.batch = 8, .columns = 4, .shards = 2});
    TestMatrix wrong_rows(16, 4), right(8, 4), z(test::random_numbers(8 * 4, 1), 8, 4, 4);
    EXPECT_THROW(loss->forward(wrong_rows.view()), Error);
    EXPECT_THROW(loss->backward(right.view()), Error);  // no forward() before it
    loss->forward(z.view());
    loss->backward(right.view());
    EXPECT_THROW(loss->backward(right.view()), Error);  // one forward() is for one backward()
  });
}

}  // namespace
}  // namespace simclr
