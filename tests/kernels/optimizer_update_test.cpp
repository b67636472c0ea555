// optimizer_update: two steps of each rule by hand, a reference in double, the skip flag, and the check for finiteness.
#include "kernels/optimizer_update/optimizer_update.h"

#include <utility>

#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const Exec kExec = CpuExec{.threads = 2};
const int kGo = 0, kSkip = 1;

// One parameter of one element through two steps of SGD with gradients 0.5 and 0.25; all numbers are exact in binary.
struct SgdState {
  float w = 2, v = 0;
};
SgdState two_steps(const SgdUpdate& how, bool decay = true) {
  SgdState s;
  for (const float grad : {0.5F, 0.25F}) {
    const ParameterRun run{.weight = &s.w, .grad = &grad, .first = &s.v, .elements = 1, .decay = decay};
    sgd_update(kExec, std::span(&run, 1), how, &kGo);
  }
  return s;
}

TEST(Sgd, HandNumbers) {
  // plain, lr 1/2: w = 2 - 0.25 = 1.75; 1.75 - 0.125 = 1.625
  EXPECT_EQ(two_steps({.lr = 0.5F}).w, 1.625F);
  // momentum 1/2: v = 0.5, w = 1.75; v = 0.25 + 0.25 = 0.5, w = 1.5
  const auto momentum = two_steps({.lr = 0.5F, .momentum = 0.5F});
  EXPECT_EQ(momentum.v, 0.5F);
  EXPECT_EQ(momentum.w, 1.5F);
  // nesterov: v = 0.5, g = 0.5 + 0.25, w = 2 - 0.375 = 1.625; v = 0.5, g = 0.25 + 0.25, w = 1.375
  EXPECT_EQ(two_steps({.lr = 0.5F, .momentum = 0.5F, .nesterov = true}).w, 1.375F);
  // decay 1/4: g = 0.5 + 0.5 = 1, w = 1.5; g = 0.25 + 0.375 = 0.625, w = 1.5 - 0.3125
  EXPECT_EQ(two_steps({.lr = 0.5F, .weight_decay = 0.25F}).w, 1.1875F);
  // decay goes into the momentum: v = 1, w = 1.5; g = 0.625, v = 0.5 + 0.625 = 1.125, w = 1.5 - 0.5625
  EXPECT_EQ(two_steps({.lr = 0.5F, .momentum = 0.5F, .weight_decay = 0.25F}).w, 0.9375F);
  // and not for a parameter that is excluded from it
  EXPECT_EQ(two_steps({.lr = 0.5F, .weight_decay = 0.25F}, false).w, 1.625F);
}

TEST(AdamW, HandNumbers) {
  // beta1 = beta2 = 1/2, eps = 0, lr = 1/4, decay = 1/2; gradients 4, then 0, from w = 2.
  // t = 1: w = 2 - 2/8 = 1.75; m = 2, v = 8; m/(1-1/2) = 4, v/(1/2) = 16; w = 1.75 - 1/4 * 4/4 = 1.5
  // t = 2: w = 1.5 - 1.5/8 = 1.3125; m = 1, v = 4; m/(3/4) = 4/3, sqrt(v/(3/4)) = 4/sqrt(3);
  //        w = 1.3125 - 1/4 * (1/sqrt(3)) = 1.3125 - 0.14433757
  float w = 2, m = 0, v = 0, grad = 4;
  const ParameterRun run{.weight = &w, .grad = &grad, .first = &m, .second = &v, .elements = 1};
  AdamWUpdate how{.lr = 0.25F, .beta1 = 0.5F, .beta2 = 0.5F, .eps = 0, .weight_decay = 0.5F, .t = 1};
  adamw_update(kExec, std::span(&run, 1), how, &kGo);
  EXPECT_EQ(m, 2);
  EXPECT_EQ(v, 8);
  EXPECT_FLOAT_EQ(w, 1.5F);
  grad = 0, how.t = 2;
  adamw_update(kExec, std::span(&run, 1), how, &kGo);
  EXPECT_EQ(m, 1);
  EXPECT_EQ(v, 4);
  EXPECT_FLOAT_EQ(w, 1.3125F - 0.14433757F);
  // eps is added to the root, outside: sqrt(16) + 4 = 8; without decay w = 2 - 1/4 * 4/8
  float w2 = 2, m2 = 0, v2 = 0;
  grad = 4, how.t = 1, how.eps = 4;
  const ParameterRun other{.weight = &w2, .grad = &grad, .first = &m2, .second = &v2, .elements = 1, .decay = false};
  adamw_update(kExec, std::span(&other, 1), how, &kGo);
  EXPECT_FLOAT_EQ(w2, 1.875F);
}

// All numbers exact in binary: w = (3, 4), |w| = 5; decay 1/2 and gradient (4.5, 6) give g = (6, 8), |g| = 10;
// trust 1/4: ratio 1/4 * 5/10 = 1/8, lr 2: rate 1/4.
TEST(Lars, HandNumbers) {
  const LarsUpdate how{.lr = 2, .momentum = 0.5F, .weight_decay = 0.5F, .trust_coefficient = 0.25F};
  std::vector<float> w{3, 4}, v{1, 0};
  const std::vector<float> grad{4.5F, 6};
  ParameterRun run{.weight = w.data(), .grad = grad.data(), .first = v.data(), .elements = 2};
  const double squares[] = {25, 100};
  float rate = 0;
  lars_update(kExec, std::span(&run, 1), how, squares, &rate, &kGo);
  EXPECT_EQ(rate, 0.25F);
  EXPECT_EQ(v, (std::vector<float>{2, 2}));  // 0.5*1 + 6/4, 8/4: the rate is in the momentum
  EXPECT_EQ(w, (std::vector<float>{1, 2}));
  // Not adapted: rate lr. Without decay: g = grad.
  w = {3, 4}, v = {1, 0}, run.adapt = false, run.decay = false;
  lars_update(kExec, std::span(&run, 1), how, squares, &rate, &kGo);
  EXPECT_EQ(rate, 2);
  EXPECT_EQ(v, (std::vector<float>{9.5F, 12}));
  EXPECT_EQ(w, (std::vector<float>{-6.5F, -8}));
}

TEST(Lars, RatioIsOneWhereANormIsZero) {
  const LarsUpdate how{.lr = 2, .trust_coefficient = 0.25F};
  for (const auto& [weight, gradient] : {std::pair{0.0, 1.0}, std::pair{1.0, 0.0}, std::pair{0.0, 0.0}}) {
    float w = 1, v = 0, rate = 0;
    const float grad = 0.25F;
    const ParameterRun run{.weight = &w, .grad = &grad, .first = &v, .elements = 1};
    const double squares[] = {weight, gradient};
    lars_update(kExec, std::span(&run, 1), how, squares, &rate, &kGo);
    EXPECT_EQ(rate, 2) << weight << " " << gradient;
    EXPECT_EQ(w, 0.5F);
  }
}

// Arrays of several runs and a guard element after each.
struct Arrays {
  explicit Arrays(std::vector<int64_t> run_lengths) : lengths(std::move(run_lengths)) {
    for (const int64_t n : lengths) {
      const auto seed = static_cast<uint32_t>(10 * n);
      w.push_back(test::random_values(n + 1, seed)), grad.push_back(test::random_values(n + 1, seed + 1));
      first.push_back(test::random_values(n + 1, seed + 2));
      second.push_back(test::random_values(n + 1, seed + 3, 0.0F, 1.0F));
    }
  }
  std::vector<ParameterRun> runs() {
    std::vector<ParameterRun> result;
    for (size_t i = 0; i < lengths.size(); ++i)
      result.push_back({w[i].data(), grad[i].data(), first[i].data(), second[i].data(), lengths[i], i % 2 == 0});
    return result;
  }
  bool same_bits_as(const Arrays& o) const {
    for (size_t i = 0; i < lengths.size(); ++i)
      if (!test::same_bits(w[i], o.w[i]) || !test::same_bits(first[i], o.first[i]) ||
          !test::same_bits(second[i], o.second[i]))
        return false;
    return true;
  }
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> w, grad, first, second;
};

// Values of order 1 and a handful of roundings each: 1e-6 is 16 u.
TEST(Sgd, AgreesWithDouble) {
  for (const bool nesterov : {false, true}) {
    const SgdUpdate how{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = nesterov};
    const Arrays before({1, 31, 33, 32769});
    Arrays after = before;
    sgd_update(kExec, after.runs(), how, &kGo);
    for (size_t r = 0; r < before.lengths.size(); ++r) {
      const auto n = static_cast<size_t>(before.lengths[r]);
      for (size_t i = 0; i < n; ++i) {
        const double decay = r % 2 == 0 ? double{how.weight_decay} : 0;
        const double g = before.grad[r][i] + decay * before.w[r][i];
        const double v = double{how.momentum} * before.first[r][i] + g;
        ASSERT_NEAR(after.first[r][i], v, 1e-6) << i;
        ASSERT_NEAR(after.w[r][i], before.w[r][i] - how.lr * (nesterov ? g + how.momentum * v : v), 1e-6) << i;
      }
      EXPECT_EQ(after.w[r][n], before.w[r][n]);
      EXPECT_EQ(after.first[r][n], before.first[r][n]);
    }
  }
}

// The step m/sqrt(v) is of order 10 at most here (v >= 0.1 * 0.001), times lr = 0.01.
TEST(AdamW, AgreesWithDouble) {
  for (const int64_t t : {1, 2, 1000}) {
    const AdamWUpdate how{.lr = 0.01F, .beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-3F, .weight_decay = 0.1F, .t = t};
    const Arrays before({1, 31, 33, 32769});
    Arrays after = before;
    adamw_update(kExec, after.runs(), how, &kGo);
    const double beta1 = how.beta1, beta2 = how.beta2, steps = static_cast<double>(t);
    for (size_t r = 0; r < before.lengths.size(); ++r) {
      const auto n = static_cast<size_t>(before.lengths[r]);
      for (size_t i = 0; i < n; ++i) {
        const double g = before.grad[r][i], decay = r % 2 == 0 ? double{how.weight_decay} : 0;
        const double m = beta1 * before.first[r][i] + (1 - beta1) * g;
        const double v = beta2 * before.second[r][i] + (1 - beta2) * g * g;
        const double step = m / (1 - std::pow(beta1, steps)) / (std::sqrt(v / (1 - std::pow(beta2, steps))) + how.eps);
        const double w = before.w[r][i] * (1 - double{how.lr} * decay) - how.lr * step;
        ASSERT_NEAR(after.first[r][i], m, 1e-6) << i;
        ASSERT_NEAR(after.second[r][i], v, 1e-6) << i;
        ASSERT_NEAR(after.w[r][i], w, 1e-6) << "t " << t << ", element " << i;
      }
      EXPECT_EQ(after.w[r][n], before.w[r][n]);
    }
  }
}

// As AgreesWithDouble of SGD; the norms are any numbers here.
TEST(Lars, AgreesWithDouble) {
  const LarsUpdate how{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .trust_coefficient = 0.02F};
  const Arrays before({1, 31, 33, 32769});
  Arrays after = before;
  const std::vector<double> squares{0.3, 10, 11, 1e4, 7, 2, 0.5, 300};
  std::vector<float> rates(4);
  lars_update(kExec, after.runs(), how, squares.data(), rates.data(), &kGo);
  for (size_t r = 0; r < 4; ++r) {
    const double ratio = double{how.trust_coefficient} * std::sqrt(squares[r] / squares[4 + r]);
    const auto n = static_cast<size_t>(before.lengths[r]);
    for (size_t i = 0; i < n; ++i) {
      const double g = before.grad[r][i] + (r % 2 == 0 ? double{how.weight_decay} : 0) * before.w[r][i];
      const double v = double{how.momentum} * before.first[r][i] + double{how.lr} * ratio * g;
      ASSERT_NEAR(after.first[r][i], v, 1e-6) << i;
      ASSERT_NEAR(after.w[r][i], before.w[r][i] - v, 1e-6) << i;
    }
    EXPECT_EQ(after.w[r][n], before.w[r][n]);
    EXPECT_EQ(after.first[r][n], before.first[r][n]);
  }
}

TEST(Updates, DoNotDependOnThreads) {
  const SgdUpdate sgd{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true};
  const AdamWUpdate adamw{.lr = 0.01F, .beta1 = 0.9F, .beta2 = 0.999F, .eps = 1e-8F, .weight_decay = 0.1F, .t = 3};
  Arrays one({32768, 100001}), more = one;
  sgd_update(CpuExec{.threads = 1}, one.runs(), sgd, &kGo);
  sgd_update(CpuExec{.threads = 3}, more.runs(), sgd, &kGo);
  EXPECT_TRUE(one.same_bits_as(more));
  adamw_update(CpuExec{.threads = 1}, one.runs(), adamw, &kGo);
  adamw_update(CpuExec{.threads = 3}, more.runs(), adamw, &kGo);
  EXPECT_TRUE(one.same_bits_as(more));
  const LarsUpdate lars{.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F, .trust_coefficient = 0.02F};
  const double squares[] = {1, 2, 3, 4};
  float rates[2];
  lars_update(CpuExec{.threads = 1}, one.runs(), lars, squares, rates, &kGo);
  lars_update(CpuExec{.threads = 3}, more.runs(), lars, squares, rates, &kGo);
  EXPECT_TRUE(one.same_bits_as(more));
}

TEST(Updates, SkipLeavesEverythingUntouched) {
  const Arrays before({1, 33, 32769});
  Arrays after = before;
  for (auto& grad : after.grad) grad[0] = test::kNaN;  // as in the step that is skipped
  sgd_update(kExec, after.runs(), {.lr = 0.3F, .momentum = 0.9F, .weight_decay = 0.01F}, &kSkip);
  EXPECT_TRUE(after.same_bits_as(before));
  adamw_update(kExec, after.runs(), {.lr = 0.1F, .beta1 = 0.9F, .beta2 = 0.99F, .eps = 1e-8F, .t = 1}, &kSkip);
  EXPECT_TRUE(after.same_bits_as(before));
  const double squares[] = {1, 2, 3, 4, 5, test::kNaN};
  float rates[3];
  lars_update(kExec, after.runs(), {.lr = 0.3F, .trust_coefficient = 0.1F}, squares, rates, &kSkip);
  EXPECT_TRUE(after.same_bits_as(before));
  sgd_update(kExec, after.runs(), {.lr = 0.3F}, &kGo);
  EXPECT_FALSE(after.same_bits_as(before));
}

TEST(Updates, RefuseWhatIsMissing) {
  float w = 1, g = 1, v = 0;
  const ParameterRun no_momentum{.weight = &w, .grad = &g, .elements = 1};
  const ParameterRun no_second{.weight = &w, .grad = &g, .first = &v, .elements = 1};
  const ParameterRun all{.weight = &w, .grad = &g, .first = &v, .second = &v, .elements = 1};
  EXPECT_THAT([&] { sgd_update(kExec, std::span(&no_momentum, 1), {}, &kGo); }, test::fires("SGD needs"));
  EXPECT_THAT([&] { lars_update(kExec, std::span(&no_momentum, 1), {}, nullptr, nullptr, &kGo); },
              test::fires("LARS needs weight"));
  EXPECT_THAT([&] { lars_update(kExec, std::span(&all, 1), {}, nullptr, nullptr, &kGo); },
              test::fires("LARS needs the squared norms"));
  EXPECT_THAT([&] { adamw_update(kExec, std::span(&no_second, 1), {}, &kGo); }, test::fires("AdamW needs"));
  EXPECT_THAT([&] { adamw_update(kExec, std::span(&all, 1), {.t = 0}, &kGo); }, test::fires("from 1, got 0"));
}

TEST(FlagNonFinite, FindsOneAnywhere) {
  constexpr int64_t kTask = 1 << 15;  // elements that one task takes
  std::vector<float> values = test::random_values(2 * kTask + 77, 1);
  const auto flag_of = [&](int threads) {
    int flag = 0;
    flag_non_finite(CpuExec{.threads = threads}, values, &flag);
    return flag;
  };
  EXPECT_EQ(flag_of(2), 0);
  const size_t places[] = {
      0, 1, 15, 16, kTask - 1, kTask, 2 * kTask - 1, 2 * kTask, values.size() - 2, values.size() - 1};
  for (const size_t place : places) {
    for (const float bad : {test::kNaN, -test::kNaN, kInfinity, -kInfinity}) {
      const float good = std::exchange(values[place], bad);
      EXPECT_EQ(flag_of(1), 1) << bad << " at " << place;
      EXPECT_EQ(flag_of(3), 1) << bad << " at " << place;
      values[place] = good;
    }
  }
}

TEST(FlagNonFinite, TakesEveryNumberAsFiniteAndNeverClears) {
  const float max = std::numeric_limits<float>::max();
  const std::vector<float> values = {0.0F,
                                     -0.0F,
                                     max,
                                     -max,
                                     std::numeric_limits<float>::denorm_min(),
                                     -std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::min()};
  int flag = 0;
  flag_non_finite(kExec, values, &flag);
  EXPECT_EQ(flag, 0);
  flag_non_finite(kExec, std::span<const float>{}, &flag);
  EXPECT_EQ(flag, 0);
  flag = 1;
  flag_non_finite(kExec, values, &flag);
  EXPECT_EQ(flag, 1);
}

}  // namespace
}  // namespace simclr
