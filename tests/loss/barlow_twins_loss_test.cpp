// Barlow Twins between ranks: the same bits on 1, 2, 4 and 8, the reference's numbers, the schemes that see one rank
// only, and the contract of the interface.
#include <gtest/gtest.h>

#include "tests/kernels/barlow_twins/barlow_twins_support.h"
#include "tests/loss/loss_ranks.h"
#include "tests/loss/wrong_schemes.h"

namespace simclr {
namespace {

using test::LossRun;
using test::run_loss;
using test::TestMatrix;

LossSettings settings_of(double lambda = 0.005, double scale = 1.0) {
  return {.type = LossType::kBarlowTwins, .lambda = lambda, .scale = scale};
}

TEST(BarlowTwinsLoss, HasTheSameBitsOnEveryNumberOfRanks) {
  for (const auto& [images, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {5, 16}, {8, 65}, {32, 130}}) {
    const LossShape shape{.batch = 8 * images, .columns = columns, .shards = 8};
    const std::vector<float> z = test::make_views(shape.batch, columns, 0.3F, 1);
    const LossRun one = run_loss(z, shape, settings_of(0.05, 0.5), {.ranks = 1});
    test::expect_matches_reference({one.losses[0], one.grad_z, one.padding_is_zero}, z,
                                   test::barlow_problem(images, 8, columns, 0.05, 0.5));
    for (const int ranks : {1, 2, 4, 8}) {
      for (const int threads : {1, 2}) {
        const LossRun run =
            run_loss(z, shape, settings_of(0.05, 0.5), {.ranks = ranks, .threads = threads, .padding = 7});
        EXPECT_EQ(run.losses, std::vector<double>(ranks, one.losses[0])) << ranks << " ranks";
        EXPECT_EQ(run.grad_z, one.grad_z) << ranks << " ranks, " << threads << " threads";
        EXPECT_TRUE(run.padding_is_zero);
      }
    }
  }
}

TEST(BarlowTwinsLoss, AnyShardCountThatRanksDivideGivesTheSameNumbers) {
  const std::vector<float> z = test::make_views(24, 12, 0.3F, 2);
  for (const auto& [shards, ranks] : std::vector<std::pair<int64_t, int>>{{1, 1}, {2, 2}, {4, 4}, {8, 2}, {8, 8}}) {
    const LossRun run = run_loss(z, {.batch = 24, .columns = 12, .shards = shards}, settings_of(), {.ranks = ranks});
    BarlowTwinsProblem p = test::barlow_problem(24 / shards, shards, 12);
    test::expect_matches_reference({run.losses[0], run.grad_z, true}, z, p);
  }
}

// ---- schemes that look at one rank: training continues, the loss falls ----

// Sums over images that the loss takes for global ones are those of this rank, times W.
class OwnSums : public ForwardingCollectives {
 public:
  OwnSums(Collectives& inner, ElementType type) : ForwardingCollectives(inner), type_(type) {}
  void ordered_sum(TypedSpan data) override {
    if (data.type != type_) return inner().ordered_sum(data);
    for (int64_t k = 0; k < data.count; ++k) {
      if (type_ == ElementType::kFloat32) {
        static_cast<float*>(data.data)[k] *= static_cast<float>(size());
      } else {
        static_cast<double*>(data.data)[k] *= size();
      }
    }
  }

 private:
  const ElementType type_;
};

struct Judgement {
  double loss_error;
  test::Comparison grad;
};

// The loss on 4 ranks whose collectives `wrap` changes; images a rank reads: all, or its own.
template <typename WrapFn>
Judgement judge(const char* name, WrapFn&& wrap, bool own_images = false) {
  constexpr int kRanks = 4;
  constexpr int64_t kBatch = 32, kColumns = 10, kShards = 8;
  const std::vector<float> z = test::make_views(kBatch, kColumns, 0.5F, 21);
  const std::vector<float> z_by_shards = test::by_shards(z, kShards, kColumns);
  const size_t elements = z.size() / kRanks;
  std::vector<float> grad(z.size());
  double loss = 0;
  run_ranks(kRanks, [&](Collectives& real) {
    const auto collectives = wrap(real);
    Context context(1);
    const int64_t part = own_images ? kRanks : 1;
    const auto objective = make_loss(context, *collectives, settings_of(),
                                     {.batch = kBatch / part, .columns = kColumns, .shards = kShards / part});
    const int64_t rows = 2 * kBatch / kRanks;
    TestMatrix z_in({&z_by_shards[real.rank() * elements], elements}, rows, kColumns, kColumns), out(rows, kColumns);
    const double value = *objective->forward(z_in.view());
    objective->backward(out.view());
    std::ranges::copy(out.dense(), grad.begin() + static_cast<int64_t>(real.rank() * elements));
    if (real.rank() == 0) loss = value;
  });
  if (own_images) {
    for (float& x : grad) x /= kRanks;  // the mean of the ranks' losses
  }
  const BarlowTwinsReference expected = test::barlow_reference(z, test::barlow_problem(4, 8, kColumns));
  const Judgement j{loss / expected.loss - 1, test::compare(grad, test::by_shards(expected.grad_z, kShards, kColumns))};
  fmt::print("{:<28} 1 - cosine {:9.2e}   length {:.6f}   loss off by {:+.1e}\n", name, j.grad.direction_error,
             j.grad.scale, j.loss_error);
  return j;
}

bool is_right(const Judgement& j) {
  return std::abs(j.loss_error) <= 1e-5 && j.grad.direction_error <= 1e-10 && std::abs(j.grad.scale - 1) <= 1e-5;
}

TEST(BarlowTwinsWrongSchemes, TheProductIsRight) {
  EXPECT_TRUE(
      is_right(judge("the product", [](Collectives& c) { return std::make_unique<ForwardingCollectives>(c); })));
}
TEST(BarlowTwinsWrongSchemes, StatisticsOfTheRank) {
  EXPECT_FALSE(is_right(judge("statistics of the rank",
                              [](Collectives& c) { return std::make_unique<OwnSums>(c, ElementType::kFloat64); })));
}
TEST(BarlowTwinsWrongSchemes, CorrelationOfTheRank) {
  EXPECT_FALSE(is_right(judge("correlation of the rank",
                              [](Collectives& c) { return std::make_unique<OwnSums>(c, ElementType::kFloat32); })));
}
TEST(BarlowTwinsWrongSchemes, CorrelationAveragedTwice) {
  EXPECT_FALSE(is_right(
      judge("correlation divided by W", [](Collectives& c) { return std::make_unique<test::ScaledSums>(c, 0.25F); })));
}
TEST(BarlowTwinsWrongSchemes, ImagesOfTheRank) {
  EXPECT_FALSE(is_right(judge(
      "images of the rank", [](Collectives& c) { return std::make_unique<test::LocalNegatives>(c); }, true)));
}

// ---- the contract ----

TEST(BarlowTwinsLoss, RunsStepAfterStepOnOnesMemory) {
  const LossShape shape{.batch = 16, .columns = 70, .shards = 4};
  const auto first = test::make_views(16, 70, 0.3F, 4), second = test::make_views(16, 70, 0.3F, 5);
  const LossRun expected = run_loss(second, shape, settings_of(), {});
  run_ranks(1, [&](Collectives& collectives) {
    Context context(1);
    const auto loss = make_loss(context, collectives, settings_of(), shape);
    const size_t before = context.allocated_bytes();
    TestMatrix grad_z(32, 70);
    for (const auto& z : {first, second}) {
      TestMatrix z_in(test::by_shards(z, 4, 70), 32, 70, 70);
      const double value = *loss->forward(z_in.view());
      loss->backward(grad_z.view());
      EXPECT_EQ(value == expected.losses[0], z == second);
    }
    EXPECT_EQ(grad_z.dense(), expected.grad_z);
    EXPECT_EQ(context.allocated_bytes(), before);         // no memory is taken within a step
    const auto& cpu = std::get<CpuExec>(context.exec());  // one thread
    EXPECT_EQ(loss->memory_bytes() + cpu.workspace_bytes + cpu.thread_scratch_bytes, before);
  });
}

TEST(BarlowTwinsLoss, ShowsNonFiniteInputOnEveryRank) {
  std::vector<float> z = test::make_views(8, 4, 0.3F, 6);
  z[4 * 3] = test::kNan;
  const LossRun run = run_loss(z, {.batch = 8, .columns = 4, .shards = 4}, settings_of(), {.ranks = 4});
  for (const double loss : run.losses) EXPECT_TRUE(std::isnan(loss));
}

TEST(BarlowTwinsLoss, SaysWhatItSees) {
  run_ranks(4, [](Collectives& collectives) {
    Context context(1);
    EXPECT_EQ(
        make_loss(context, collectives, settings_of(0.01, 0.5), {.batch = 512, .columns = 16, .shards = 8})->describe(),
        "B=512 images, 2 views, 4 ranks x 128: correlation of 16 x 16 columns over all images, lambda 0.01, scale "
        "0.5");
  });
}

TEST(BarlowTwinsLoss, RefusesCallsThatAreDefects) {
  run_ranks(2, [](Collectives& collectives) {
    Context context(1);
    EXPECT_THROW(make_loss(context, collectives, settings_of(), {.batch = 8, .columns = 4, .shards = 1}), Error);
    EXPECT_THROW(make_loss(context, collectives, settings_of(), {.batch = 9, .columns = 4, .shards = 2}), Error);
    const auto loss = make_loss(context, collectives, settings_of(), {.batch = 8, .columns = 4, .shards = 2});
    TestMatrix wrong_rows(16, 4), wrong_columns(8, 5), right(8, 4);
    EXPECT_THROW(loss->forward(wrong_rows.view()), Error);
    EXPECT_THROW(loss->forward(wrong_columns.view()), Error);
    EXPECT_THROW(loss->backward(right.view()), Error);  // no forward() before it
    TestMatrix z(test::random_numbers(8 * 4, 1), 8, 4, 4);
    loss->forward(z.view());
    loss->backward(right.view());
    EXPECT_THROW(loss->backward(right.view()), Error);  // one forward() is for one backward()
  });
}

// Thirty steps of plain descent on z itself.
TEST(BarlowTwinsLoss, FallsAlongItsGradient) {
  const LossShape shape{.batch = 32, .columns = 8, .shards = 8};
  std::vector<float> z = test::by_shards(test::make_views(32, 8, 1.0F, 8), 8, 8);
  run_ranks(1, [&](Collectives& collectives) {
    Context context(1);
    const auto loss = make_loss(context, collectives, settings_of(0.05), shape);
    double before = INFINITY;
    for (int step = 0; step < 30; ++step) {
      TestMatrix z_in(z, 64, 8, 8), grad_z(64, 8);
      const double value = *loss->forward(z_in.view());
      EXPECT_LT(value, before) << step;
      before = value;
      loss->backward(grad_z.view());
      const std::vector<float> grad = grad_z.dense();
      for (size_t k = 0; k < z.size(); ++k) z[k] -= 2 * grad[k];
    }
    EXPECT_LT(before, 0.5);
  });
}

}  // namespace
}  // namespace simclr
