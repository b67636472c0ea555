// The optimizers over a store of one matrix and one vector: two steps by hand, weight decay, state, skip, and that they
// find a minimum. All hand numbers of SGD are exact in float, so that equality is ==.
#include "src/optim/optimizer.h"

#include "src/optim/gradient_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

using Values = std::vector<float>;

// w [1, 2] (decayed) and b [2] (not, unless decay_1d). All weights start at 1.
class OptimizerTest : public testing::Test {
 protected:
  void make(const OptimizerSettings& settings, int64_t columns = 2, int threads = 1) {
    context_ = std::make_unique<Context>(threads);
    store_ = std::make_unique<ParameterStore>();
    w_ = &store_->add("w", {1, columns}, GradientScope::kPerRank);
    b_ = &store_->add("b", {2}, GradientScope::kGlobal);
    store_->allocate(*context_);
    std::fill_n(w_->value, columns, 1.0F);
    std::fill_n(b_->value, 2, 1.0F);
    optimizer_ = make_optimizer(*context_, *store_, settings);
  }
  void update(int64_t step, double lr, float grad, int skip = 0) {
    std::fill_n(w_->grad, w_->elements, grad);
    std::fill_n(b_->grad, 2, grad);
    optimizer_->update(step, lr, &skip);
  }
  static Values of(const Parameter* p) { return {p->value, p->value + p->elements}; }
  Values state(const std::string& name) const {
    for (const auto& t : optimizer_->state())
      if (t.name == name) return {t.data, t.data + 2};
    ADD_FAILURE() << "no state called " << name;
    return {};
  }

  std::unique_ptr<Context> context_;
  std::unique_ptr<ParameterStore> store_;
  Parameter *w_ = nullptr, *b_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
};

OptimizerSettings sgd(double momentum = 0.5, double weight_decay = 0.5) {
  return {.type = OptimizerType::kSgd, .momentum = momentum, .weight_decay = weight_decay};
}
OptimizerSettings lars(double momentum = 0.5) {
  return {.type = OptimizerType::kLars, .momentum = momentum, .weight_decay = 0.5, .trust_coefficient = 0.25};
}
OptimizerSettings adamw() {
  return {.type = OptimizerType::kAdamW, .betas = {0.5, 0.75}, .eps = 1.0, .weight_decay = 0.5};
}

TEST_F(OptimizerTest, SgdByHand) {
  make(sgd());
  update(0, 0.25, 0.5F);
  // w: g = 0.5 + 0.5*1 = 1, v = 1, w = 1 - 0.25.    b: g = v = 0.5, b = 1 - 0.125
  EXPECT_EQ(of(w_), Values(2, 0.75F));
  EXPECT_EQ(of(b_), Values(2, 0.875F));
  update(1, 0.25, 0.5F);
  // w: g = 0.5 + 0.375, v = 0.5*1 + 0.875 = 1.375, w = 0.75 - 0.34375.    b: v = 0.25 + 0.5, b = 0.875 - 0.1875
  EXPECT_EQ(of(w_), Values(2, 0.40625F));
  EXPECT_EQ(of(b_), Values(2, 0.6875F));
  EXPECT_EQ(state("optimizer.momentum.w"), Values(2, 1.375F));
  EXPECT_EQ(state("optimizer.momentum.b"), Values(2, 0.75F));
}

TEST_F(OptimizerTest, NesterovByHand) {
  auto settings = sgd();
  settings.nesterov = true;
  make(settings);
  update(0, 0.25, 0.5F);
  // w: g = v = 1, step 1 + 0.5*1 = 1.5, w = 1 - 0.375.    b: g = v = 0.5, step 0.75, b = 1 - 0.1875
  EXPECT_EQ(of(w_), Values(2, 0.625F));
  EXPECT_EQ(of(b_), Values(2, 0.8125F));
  update(1, 0.25, 0.5F);
  // w: g = 0.5 + 0.3125, v = 0.5 + 0.8125 = 1.3125, step 0.8125 + 0.65625 = 1.46875, w = 0.625 - 0.3671875
  EXPECT_EQ(of(w_), Values(2, 0.2578125F));
  EXPECT_EQ(state("optimizer.momentum.w"), Values(2, 1.3125F));
}

// The matrix is adapted and decays; the vector neither, as biases and batch norm in SimCLR.
TEST_F(OptimizerTest, LarsByHand) {
  make(lars());
  update(0, 4.0, 0.5F);
  // w: g = 0.5 + 0.5*1 = 1 like w itself: ratio 1/4 * |w|/|g| = 1/4; v = 4 * 1/4 * 1, w = 1 - 1
  EXPECT_EQ(of(w_), Values(2, 0.0F));
  EXPECT_EQ(state("optimizer.lars.w"), Values(2, 1.0F));
  // b: v = 4 * 0.5, b = 1 - 2
  EXPECT_EQ(of(b_), Values(2, -1.0F));
  EXPECT_EQ(state("optimizer.lars.b"), Values(2, 2.0F));
  update(1, 4.0, 0.5F);
  // |w| = 0: ratio 1; g = 0.5, v = 0.5*1 + 4*0.5 = 2.5, w = -2.5
  EXPECT_EQ(of(w_), Values(2, -2.5F));
  EXPECT_EQ(of(b_), Values(2, -4.0F));  // v = 0.5*2 + 2
}

// Two steps of SimCLR's formula in double, with norms of its own.
TEST_F(OptimizerTest, LarsAgreesWithDouble) {
  constexpr int64_t kMany = 9001;
  make(lars(0.9), kMany);
  const auto start = test::random_values(kMany, 1), grad = test::random_values(kMany, 2);
  std::copy(start.begin(), start.end(), w_->value);
  std::vector<double> w(start.begin(), start.end()), v(w.size(), 0.0);
  for (int64_t step = 0; step < 2; ++step) {
    std::copy(grad.begin(), grad.end(), w_->grad);
    const int skip = 0;
    optimizer_->update(step, 0.3, &skip);
    double weight = 0, gradient = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      weight += w[i] * w[i];
      gradient += (grad[i] + 0.5 * w[i]) * (grad[i] + 0.5 * w[i]);
    }
    const double ratio = 0.25 * std::sqrt(weight) / std::sqrt(gradient);
    for (size_t i = 0; i < w.size(); ++i) {
      v[i] = 0.9 * v[i] + 0.3 * ratio * (grad[i] + 0.5 * w[i]);
      w[i] -= v[i];
    }
  }
  for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(w_->value[i], w[i], 1e-6) << i;
}

TEST_F(OptimizerTest, AdamWByHand) {
  make(adamw());
  update(0, 0.25, 2.0F);
  // m = 0.5*2 = 1, v = 0.25*4 = 1, m/(1-0.5) = 2, v/(1-0.75) = 4: step 0.25*2/(2+1) = 1/6; w decays by 1 - 0.125 first
  EXPECT_FLOAT_EQ(of(w_)[0], 0.875F - 1.0F / 6);
  EXPECT_FLOAT_EQ(of(b_)[1], 1.0F - 1.0F / 6);
  EXPECT_EQ(state("optimizer.exp_avg.w"), Values(2, 1.0F));
  EXPECT_EQ(state("optimizer.exp_avg_sq.b"), Values(2, 1.0F));
  update(1, 0.25, 0.0F);
  // m = 0.5, v = 0.75, m/(1-0.25) = 2/3, v/(1-0.5625) = 12/7
  const double step = 0.25 * (2.0 / 3) / (std::sqrt(12.0 / 7) + 1);
  EXPECT_NEAR(of(w_)[1], (0.875 - 1.0 / 6) * 0.875 - step, 1e-7);
  EXPECT_NEAR(of(b_)[0], 1 - 1.0 / 6 - step, 1e-7);
}

// A resumed run: the bias correction follows the step passed to update().
TEST_F(OptimizerTest, AdamWCorrectsByTheStepNumber) {
  make(adamw());
  update(2, 0.25, 2.0F);
  // m = v = 1; t = 3: m/(1 - 0.125), v/(1 - 0.421875)
  const double step = 0.25 * (1 / 0.875) / (std::sqrt(1 / 0.578125) + 1);
  EXPECT_NEAR(of(b_)[0], 1 - step, 1e-7);
}

TEST_F(OptimizerTest, WeightDecayReachesVectorsOnlyWhenAsked) {
  for (auto settings : {sgd(), adamw()}) {
    for (const bool decay_1d : {false, true}) {
      settings.decay_1d = decay_1d;
      make(settings);
      update(0, 0.25, 0.0F);
      EXPECT_EQ(of(w_), Values(2, 0.875F));  // both: 1 - 0.25 * 0.5
      EXPECT_EQ(of(b_), Values(2, decay_1d ? 0.875F : 1.0F));
    }
  }
}

TEST_F(OptimizerTest, StateHasNamesShapesAndZeros) {
  const auto described = [&] {
    std::vector<std::pair<std::string, std::vector<int64_t>>> out;
    for (const auto& t : optimizer_->state()) {
      out.emplace_back(t.name, t.shape);
      EXPECT_EQ(Values(t.data, t.data + 2), Values(2, 0.0F)) << t.name;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data) % 256, 0u) << t.name;
    }
    return out;
  };
  using testing::Pair;
  using testing::UnorderedElementsAre;
  const std::vector<int64_t> matrix{1, 2}, vector{2};
  make(sgd());
  EXPECT_THAT(described(),
              UnorderedElementsAre(Pair("optimizer.momentum.w", matrix), Pair("optimizer.momentum.b", vector)));
  make(lars());
  EXPECT_THAT(described(), UnorderedElementsAre(Pair("optimizer.lars.w", matrix), Pair("optimizer.lars.b", vector)));
  make(adamw());
  EXPECT_THAT(described(),
              UnorderedElementsAre(Pair("optimizer.exp_avg.w", matrix), Pair("optimizer.exp_avg.b", vector),
                                   Pair("optimizer.exp_avg_sq.w", matrix), Pair("optimizer.exp_avg_sq.b", vector)));
}

// What a checkpoint puts back through state() is what the next update works with.
TEST_F(OptimizerTest, StateIsTheLiveMemory) {
  make(sgd());
  for (const auto& t : optimizer_->state()) std::fill_n(t.data, 2, 4.0F);
  update(0, 0.25, 0.0F);
  EXPECT_EQ(of(b_), Values(2, 1.0F - 0.25F * 0.5F * 4.0F));
}

TEST_F(OptimizerTest, SkipLeavesWeightsAndStateUntouched) {
  for (const auto& settings : {sgd(), lars(), adamw()}) {
    make(settings);
    update(0, 0.25, 0.5F);
    const auto w = of(w_), b = of(b_);
    std::vector<Values> before;
    for (const auto& t : optimizer_->state()) before.emplace_back(t.data, t.data + 2);
    update(1, 0.25, std::numeric_limits<float>::quiet_NaN(), 1);
    EXPECT_TRUE(test::same_bits(of(w_), w));
    EXPECT_TRUE(test::same_bits(of(b_), b));
    size_t i = 0;
    for (const auto& t : optimizer_->state())
      EXPECT_TRUE(test::same_bits(Values(t.data, t.data + 2), before[i++])) << t.name;
    update(1, 0.25, 0.5F);
    EXPECT_FALSE(test::same_bits(of(w_), w));
  }
}

// f = sum a_i (x_i - 3)^2 / 2 with curvatures from 0.1 to 1.
TEST_F(OptimizerTest, FindsTheMinimumOfAQuadratic) {
  OptimizerSettings adam = adamw();
  adam.betas = {0.9, 0.999};
  adam.eps = 1e-8;
  for (auto settings : {sgd(0.9), adam}) {
    settings.weight_decay = 0;
    make(settings, 10);
    for (int64_t step = 0; step < 400; ++step) {
      for (int64_t i = 0; i < 10; ++i) w_->grad[i] = 0.1F * static_cast<float>(i + 1) * (w_->value[i] - 3.0F);
      const int skip = 0;
      optimizer_->update(step, 0.1 * static_cast<double>(400 - step) / 400, &skip);
    }
    for (const float v : of(w_)) EXPECT_NEAR(v, 3.0F, 1e-3F);
  }
}

TEST_F(OptimizerTest, SameBitsForEveryNumberOfThreads) {
  constexpr int64_t kMany = 70001;  // more than two chunks of the update, and an odd rest
  for (const auto& settings : {sgd(0.9, 1e-3), lars(0.9), adamw()}) {
    std::vector<Values> results;
    for (const int threads : {1, 3}) {
      make(settings, kMany, threads);
      const auto grad = test::random_values(kMany, 1, 0.5F, 1.0F);
      for (int64_t step = 0; step < 3; ++step) {
        std::copy(grad.begin(), grad.end(), w_->grad);
        const int skip = 0;
        optimizer_->update(step, 0.01, &skip);
      }
      results.push_back(of(w_));
    }
    EXPECT_TRUE(test::same_bits(results[0], results[1]));
    for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NE(results[0][i], 1.0F) << i;  // every element was reached
  }
}

TEST_F(OptimizerTest, GradientNormIsThatOfAllParameters) {
  make(sgd(), 3);
  const Values w_grad{2, 4, 5}, b_grad{6, 0};  // 4 + 16 + 25 + 36
  std::copy(w_grad.begin(), w_grad.end(), w_->grad);
  std::copy(b_grad.begin(), b_grad.end(), b_->grad);
  GradientNorm norm(*context_, *store_);
  EXPECT_EQ(*norm.queue_square(), 81);
}

}  // namespace
}  // namespace simclr
