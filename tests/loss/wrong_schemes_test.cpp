// Each wrong scheme of wrong_schemes.h must be caught, the right one must pass the same check. What is checked is a
// step of plain SGD on a linear encoder z = x A: its direction and its length apart, because AdamW and LARS forgive a
// factor and a falling loss forgives everything. Low temperature (0.1) and W = 4, where the schemes differ most.
#include "tests/loss/wrong_schemes.h"

#include <gtest/gtest.h>

#include <functional>

#include "kernels/infonce/infonce_ref.h"
#include "tests/loss/loss_ranks.h"

namespace simclr {
namespace {

using test::Comparison;

constexpr int kRanks = 4;
constexpr int64_t kBatch = 64, kShards = 8, kInputs = 24, kColumns = 16;
constexpr double kTemperature = 0.1;

// What a test of gradients must distinguish. The right scheme is off by 1e-12 and 1e-7 (float).
constexpr double kDirectionLimit = 1e-9, kScaleLimit = 1e-5;

struct Scheme {
  std::string name;
  std::function<std::unique_ptr<Collectives>(Collectives&)> for_loss;       // what the loss talks to
  std::function<std::unique_ptr<Collectives>(Collectives&)> for_reduction;  // what sums parameter gradients over ranks
  bool local_negatives = false;
  LossAlgorithm algorithm = LossAlgorithm::kEinsum;
};

struct Step {
  double loss;
  std::vector<float> grad_a;  // dL/dA [inputs, C] on rank 0, summed over ranks: the step of SGD is -lr times it
};

std::vector<float> inputs() {
  return test::make_views(kBatch, kInputs, 0.8F, 21);
}  // x [2B, inputs], global order
std::vector<float> weights() {
  return test::random_numbers(kInputs * kColumns, 22);
}  // A [inputs, C]

// z = x A, [rows, C]
std::vector<float> encode(std::span<const float> x, int64_t rows) {
  const std::vector<float> a = weights();
  std::vector<float> z(rows * kColumns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < kColumns; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < kInputs; ++k) sum += static_cast<double>(x[i * kInputs + k]) * a[k * kColumns + c];
      z[i * kColumns + c] = static_cast<float>(sum);
    }
  }
  return z;
}

// dL/dA = x^T grad_z, [inputs, C]
template <typename T>
std::vector<double> weight_gradient(std::span<const float> x, const std::vector<T>& grad_z) {
  std::vector<double> grad(kInputs * kColumns);
  for (size_t i = 0; i < grad_z.size() / kColumns; ++i) {
    for (size_t k = 0; k < kInputs; ++k) {
      for (size_t c = 0; c < kColumns; ++c)
        grad[k * kColumns + c] += static_cast<double>(x[i * kInputs + k]) * grad_z[i * kColumns + c];
    }
  }
  return grad;
}

Step run(const Scheme& scheme) {
  const std::vector<float> x = test::by_shards(inputs(), kShards, kInputs);
  const int64_t rows = 2 * kBatch / kRanks;
  Step step{};
  run_ranks(kRanks, [&](Collectives& real) {
    const auto for_loss = scheme.for_loss(real), for_reduction = scheme.for_reduction(real);
    Context context(1);
    const LossShape shape = scheme.local_negatives ? LossShape{kBatch / kRanks, kColumns, kShards / kRanks}
                                                   : LossShape{kBatch, kColumns, kShards};
    const auto loss =
        make_loss(context, *for_loss, {.algorithm = scheme.algorithm, .temperature = kTemperature}, shape);
    const std::span<const float> x_local(&x[real.rank() * rows * kInputs], rows * kInputs);
    test::TestMatrix z(encode(x_local, rows), rows, kColumns, kColumns), grad_z(rows, kColumns);
    const double value = *loss->forward(z.view());
    loss->backward(grad_z.view());
    const std::vector<double> grad = weight_gradient(x_local, grad_z.dense());
    std::vector<float> grad_a(grad.begin(), grad.end());
    for_reduction->ordered_sum(std::span<float>(grad_a));
    if (real.rank() == 0) step = {.loss = value, .grad_a = grad_a};
  });
  return step;
}

InfoNceReference reference() {
  const std::vector<double> z = test::to_double(encode(inputs(), 2 * kBatch));
  return infonce_reference(z, {.batch = kBatch, .columns = kColumns, .temperature = kTemperature, .margin = 0});
}

template <typename Wrapper, typename... Args>
auto wrap(Args... args) {
  return
      [args...](Collectives& real) -> std::unique_ptr<Collectives> { return std::make_unique<Wrapper>(real, args...); };
}

struct Judgement {
  Comparison step;
  double loss_error;
  bool direction_is_right, scale_is_right;
};

Judgement judge(const Scheme& scheme) {
  const InfoNceReference expected = reference();
  const Step step = run(scheme);
  const Comparison c = test::compare(step.grad_a, weight_gradient(std::span<const float>(inputs()), expected.grad_z));
  const Judgement out{.step = c,
                      .loss_error = step.loss / expected.loss - 1,
                      .direction_is_right = c.direction_error <= kDirectionLimit,
                      .scale_is_right = std::abs(c.scale - 1) <= kScaleLimit};
  fmt::print("{:<34} 1 - cosine {:9.2e} {}   length {:.6f} {}   loss off by {:+.1e}\n", scheme.name, c.direction_error,
             out.direction_is_right ? "right" : "WRONG", c.scale, out.scale_is_right ? "right" : "WRONG",
             out.loss_error);
  return out;
}

const auto kReal = wrap<ForwardingCollectives>();

TEST(WrongSchemes, TheProductIsRight) {
  const Judgement j = judge({"the product", kReal, kReal});
  EXPECT_TRUE(j.direction_is_right);
  EXPECT_TRUE(j.scale_is_right);
  EXPECT_LE(std::abs(j.loss_error), 1e-6);
}

TEST(WrongSchemes, OwnSliceOfTheKeyGradient) {
  const Judgement j = judge({"own slice only", wrap<test::OwnSliceOnly>(), kReal});
  EXPECT_FALSE(j.direction_is_right);
  EXPECT_FALSE(j.scale_is_right);
  EXPECT_LE(std::abs(j.loss_error), 1e-6);  // the loss shows nothing
}

TEST(WrongSchemes, KeysDetached) {
  const Judgement j = judge({"keys detached", wrap<test::KeysDetached>(), kReal});
  EXPECT_FALSE(j.direction_is_right);
  EXPECT_FALSE(j.scale_is_right);
  EXPECT_LE(std::abs(j.loss_error), 1e-6);
}

TEST(WrongSchemes, FactorOnTheKeySide) {
  for (const float factor : {static_cast<float>(kRanks), 1.0F / kRanks}) {
    const Judgement j = judge({fmt::format("key side times {}", factor), wrap<test::ScaledKeySide>(factor), kReal});
    EXPECT_FALSE(j.direction_is_right);
    EXPECT_FALSE(j.scale_is_right);
  }
}

// The direction is right: only the length shows it.
TEST(WrongSchemes, FactorOnTheParameterGradient) {
  for (const float factor : {static_cast<float>(kRanks), 1.0F / kRanks}) {
    const Judgement j =
        judge({fmt::format("parameter gradient times {}", factor), kReal, wrap<test::ScaledSums>(factor)});
    EXPECT_TRUE(j.direction_is_right);
    EXPECT_FALSE(j.scale_is_right);
    EXPECT_NEAR(j.step.scale / factor, 1, 1e-5);
  }
}

// Own slice only, then the factor W that is said to make up for it: the length is nearer, the direction stays wrong.
TEST(WrongSchemes, OwnSliceTimesRanks) {
  const Judgement j =
      judge({"own slice only, averaged", wrap<test::OwnSliceOnly>(), wrap<test::ScaledSums>(1.0F / kRanks)});
  EXPECT_FALSE(j.direction_is_right);
  EXPECT_FALSE(j.scale_is_right);
}

TEST(WrongSchemes, LocalNegatives) {
  const Judgement j =
      judge({"local negatives, averaged", wrap<test::LocalNegatives>(), wrap<test::ScaledSums>(1.0F / kRanks), true});
  EXPECT_FALSE(j.direction_is_right);
  EXPECT_FALSE(j.scale_is_right);
  EXPECT_GE(std::abs(j.loss_error), 0.1);  // fewer negatives, smaller loss
}

Scheme streaming(Scheme scheme) {
  scheme.name = "streaming: " + scheme.name;
  scheme.algorithm = LossAlgorithm::kStreaming;
  return scheme;
}

// No gradient travels, so what loses one changes nothing.
TEST(WrongSchemesOfStreaming, TheProductIsRight) {
  const std::vector<decltype(Scheme::for_loss)> all = {kReal, wrap<test::OwnSliceOnly>(), wrap<test::KeysDetached>()};
  for (const auto& for_loss : all) {
    const Judgement j = judge(streaming({"the product", for_loss, kReal}));
    EXPECT_TRUE(j.direction_is_right);
    EXPECT_TRUE(j.scale_is_right);
    EXPECT_LE(std::abs(j.loss_error), 1e-6);
  }
}

TEST(WrongSchemesOfStreaming, ForeignAnchorsLostOrScaled) {
  for (const double factor : {0.0, static_cast<double>(kRanks), 1.0 / kRanks}) {
    const Judgement j = judge(
        streaming({fmt::format("foreign anchors times {}", factor), wrap<test::ScaledForeignAnchors>(factor), kReal}));
    EXPECT_FALSE(j.direction_is_right);
    EXPECT_FALSE(j.scale_is_right);
    EXPECT_LE(std::abs(j.loss_error), 1e-6);  // the loss shows nothing
  }
}

TEST(WrongSchemesOfStreaming, FactorOnTheParameterGradient) {
  for (const float factor : {static_cast<float>(kRanks), 1.0F / kRanks}) {
    const Judgement j =
        judge(streaming({fmt::format("parameter gradient times {}", factor), kReal, wrap<test::ScaledSums>(factor)}));
    EXPECT_TRUE(j.direction_is_right);
    EXPECT_FALSE(j.scale_is_right);
  }
}

TEST(WrongSchemesOfStreaming, LocalNegatives) {
  const Judgement j = judge(streaming(
      {"local negatives, averaged", wrap<test::LocalNegatives>(), wrap<test::ScaledSums>(1.0F / kRanks), true}));
  EXPECT_FALSE(j.direction_is_right);
  EXPECT_FALSE(j.scale_is_right);
  EXPECT_GE(std::abs(j.loss_error), 0.1);
}

}  // namespace
}  // namespace simclr
