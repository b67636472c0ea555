// Hand numbers, finite differences, plain loops in long double, the minimum itself, then ranks and threads.
#include "src/evaluate/linear_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/common/error.h"
#include "kernels/common/philox.h"
#include "src/evaluate/linear_products.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

struct Set {
  int64_t width = 0;
  std::vector<float> values;
  std::vector<int32_t> labels;

  ProbeData view() const { return {{values.data(), static_cast<int64_t>(labels.size()), width, width}, labels}; }
};

// Classes around centers far from the origin (what a ReLU network's features look like), with noise.
Set random_set(int64_t count, int64_t width, int32_t classes, uint32_t seed, float noise = 1) {
  Set set{.width = width, .values = {}, .labels = {}};
  for (int64_t i = 0; i < count; ++i) {
    PhiloxStream random({seed, 1}, static_cast<uint32_t>(i), 0, 0);
    const auto label = static_cast<int32_t>(random.below(static_cast<uint32_t>(classes)));
    PhiloxStream center({7, 7}, static_cast<uint32_t>(label), 0, 0);
    for (int64_t j = 0; j < width; ++j) set.values.push_back(5 + center.uniform(-1, 1) + random.uniform(-noise, noise));
    set.labels.push_back(label);
  }
  return set;
}

std::vector<double> random_weights(size_t count, float scale) {
  PhiloxStream random({3, 4}, 0, 0, 0);
  std::vector<double> weights(count);
  for (double& w : weights) w = random.uniform(-scale, scale);
  return weights;
}

// f by its definition.
long double plain_objective(const Set& set, int64_t classes, double c, const std::vector<double>& weights) {
  const auto width = static_cast<size_t>(set.width);
  long double loss = 0, square = 0;
  for (size_t i = 0; i < set.labels.size(); ++i) {
    std::vector<long double> logits;
    for (size_t k = 0; k < static_cast<size_t>(classes); ++k) {
      long double logit = weights[k * (width + 1) + width];
      for (size_t d = 0; d < width; ++d)
        logit += static_cast<long double>(weights[k * (width + 1) + d]) * set.values[i * width + d];
      logits.push_back(logit);
    }
    long double sum = 0;
    for (const long double logit : logits) sum += std::exp(logit);
    loss += std::log(sum) - logits[set.labels[i]];
  }
  for (size_t k = 0; k < static_cast<size_t>(classes); ++k)
    for (size_t d = 0; d < width; ++d)
      square += static_cast<long double>(weights[k * (width + 1) + d]) * weights[k * (width + 1) + d];
  const auto rows = static_cast<long double>(set.labels.size());
  return loss / rows + square / (2 * c * rows);
}

template <typename Work>
void alone(int64_t classes, Work&& work) {
  run_ranks(1, [&](Collectives& collectives) {
    LinearProbe probe(CpuExec{.threads = 2}, collectives, classes);
    work(probe);
  });
}

TEST(LinearProducts, EqualPlainLoopsOnAwkwardSizes) {
  for (int64_t rows : {1, 5, 49, 257}) {
    for (int64_t width : {1, 17, 33}) {
      for (int64_t classes : {1, 6, 9, 13}) {
        const Set set = random_set(rows, width, 3, 1);
        const ConstFloatMatrix x = set.view().features;
        const std::vector<double> weights = random_weights(static_cast<size_t>(classes * (width + 1)), 1);
        std::vector<double> logits(rows * classes, NAN);
        linear_logits(CpuExec{.threads = 3}, x, weights, logits);
        const int64_t first = width / 3, columns = width - first;
        std::vector<double> gradient(classes * columns, NAN);
        linear_gradient(CpuExec{.threads = 3}, x, logits, first, columns, gradient);
        for (int64_t k = 0; k < classes; ++k) {
          for (int64_t i = 0; i < rows; ++i) {
            double sum = weights[k * (width + 1) + width];
            for (int64_t d = 0; d < width; ++d) sum += x.row(i)[d] * weights[k * (width + 1) + d];
            ASSERT_NEAR(logits[i * classes + k], sum, 1e-12 * static_cast<double>(width) * 10);
          }
          for (int64_t d = 0; d < columns; ++d) {
            double sum = 0;
            for (int64_t i = 0; i < rows; ++i) sum += logits[i * classes + k] * x.row(i)[first + d];
            ASSERT_NEAR(gradient[k * columns + d], sum, 1e-13 * static_cast<double>(rows) * 2000);
          }
        }
      }
    }
  }
}

TEST(LinearProbe, ObjectiveByHand) {
  // Two classes, one feature, x = 1 and 3; W = (1, 0), b = (0, 2): logits (1, 2) and (3, 2).
  const Set set{.width = 1, .values = {1, 3}, .labels = {0, 1}};
  alone(2, [&](LinearProbe& probe) {
    const std::vector<double> weights = {1, 0, 0, 2};
    std::vector<double> gradient(4);
    // losses: log(1 + e) = 1.3132617 twice; W^2 = 1; C = 2, N = 2: 1/(2 C N) = 1/8
    EXPECT_NEAR(probe.objective(set.view(), 2, weights, gradient), 1.3132616875182228 + 0.125, 1e-15);
    const double p = 1 / (1 + std::exp(-1.0));  // 0.7311, of the larger logit, which is the wrong class both times
    EXPECT_NEAR(gradient[0], (-p * 1 + p * 3) / 2 + 0.25, 1e-15);
    EXPECT_NEAR(gradient[1], 0, 1e-15);
    EXPECT_NEAR(gradient[2], (p * 1 - p * 3) / 2, 1e-15);
    EXPECT_NEAR(gradient[3], 0, 1e-15);
  });
}

TEST(LinearProbe, ObjectiveAndGradientEqualTheDefinition) {
  const Set set = random_set(90, 7, 5, 1);
  alone(5, [&](LinearProbe& probe) {
    std::vector<double> weights = random_weights(5 * 8, 0.5F), gradient(weights.size());
    const double value = probe.objective(set.view(), 0.3, weights, gradient);
    EXPECT_NEAR(value, static_cast<double>(plain_objective(set, 5, 0.3, weights)), 1e-13);
    for (size_t i = 0; i < weights.size(); ++i) {
      // Central differences in long double, h = 1e-6: error h^2 f''' / 6, about 1e-12 times third powers of features.
      const double kept = weights[i], h = 1e-6;
      weights[i] = kept + h;
      const long double above = plain_objective(set, 5, 0.3, weights);
      weights[i] = kept - h;
      const long double below = plain_objective(set, 5, 0.3, weights);
      weights[i] = kept;
      EXPECT_NEAR(gradient[i], static_cast<double>((above - below) / (2 * h)), 1e-9) << i;
    }
  });
}

TEST(LinearProbe, TheSolutionIsTheMinimum) {
  const Set set = random_set(300, 12, 4, 2);
  alone(4, [&](LinearProbe& probe) {
    for (double c : {0.01, 1.0, 100.0}) {
      const LbfgsOptions options{.tolerance = 1e-9, .most_iterations = 2000};
      const ProbeSolution solution = probe.solve(set.view(), c, options);
      EXPECT_TRUE(solution.solver.converged) << c;
      std::vector<double> gradient(solution.weights.size());
      const double value = probe.objective(set.view(), c, solution.weights, gradient);
      EXPECT_NEAR(value, solution.solver.value, 1e-13);
      for (const double g : gradient) EXPECT_LE(std::abs(g), 1e-8);  // in features as they are, near 5 each
      // No other point is lower, and another way leads to the same one.
      std::vector<double> other = solution.weights;
      for (size_t i = 0; i < other.size(); i += 3) other[i] += i % 2 == 0 ? 1e-3 : -1e-3;
      EXPECT_GT(probe.objective(set.view(), c, other, gradient), value);
      const ProbeSolution again = probe.solve(set.view(), c, options, random_weights(other.size(), 1));
      // f is convex by 1 / (C N) in W at least: each solution is within |g| C N of the minimum, |g| <= 1e-9 sqrt(52).
      const double near = 2 * 1e-9 * std::sqrt(52.0) * c * 300;
      for (size_t i = 0; i < other.size(); ++i)
        EXPECT_NEAR(again.weights[i], solution.weights[i], i % 13 == 12 ? INFINITY : near) << c << " " << i;
    }
  });
}

TEST(LinearProbe, SaysThatItDidNotConverge) {
  const Set set = random_set(100, 12, 4, 2);
  alone(4, [&](LinearProbe& probe) {
    int calls = 0;
    const ProbeSolution solution =
        probe.solve(set.view(), 100, {.tolerance = 1e-9, .most_iterations = 3}, {},
                    [&](const LbfgsResult& so_far) { EXPECT_EQ(so_far.iterations, ++calls); });
    EXPECT_FALSE(solution.solver.converged);
    EXPECT_EQ(solution.solver.iterations, 3);
    EXPECT_GT(solution.solver.gradient, 1e-9);
  });
}

TEST(LinearProbe, ScoresByHand) {
  // One feature; logits of class k: x * k, for seven classes.
  ProbeSolution solution;
  for (int k = 0; k < 7; ++k) solution.weights.insert(solution.weights.end(), {static_cast<double>(k), 0.0});
  const Set set{.width = 1, .values = {1, 1, 1, -1, 0}, .labels = {6, 2, 1, 1, 3}};
  alone(7, [&](LinearProbe& probe) {
    const ProbeScores scores = probe.score(solution, set.view());
    EXPECT_EQ(scores.queries, 5);
    EXPECT_EQ(scores.top1_correct, 1);  // the first; a tie of all classes goes to class 0
    EXPECT_EQ(scores.top5_correct, 4);  // class 2 is fifth, class 1 sixth; in the tie class 3 is fourth
    double sum = 0;  // of exp(k): the first image's loss is log(sum) - 6, the second's log(sum) - 2, ...
    for (int k = 0; k < 7; ++k) sum += std::exp(k);
    const double down = std::log(sum) - 6 + 1;  // x = -1: logits 0 to -6, the true one -1
    EXPECT_NEAR(scores.loss, (3 * std::log(sum) - 6 - 2 - 1 + down + std::log(7.0)) / 5, 1e-12);
    EXPECT_EQ(scores.confusion[6 * 7 + 6], 1);
    EXPECT_EQ(scores.confusion[2 * 7 + 6], 1);
    EXPECT_EQ(scores.confusion[1 * 7 + 6], 1);
    EXPECT_EQ(scores.confusion[1 * 7 + 0], 1);
    EXPECT_EQ(scores.confusion[3 * 7 + 0], 1);
  });
}

TEST(LinearProbe, ChoosesCByHeldOutLabels) {
  // Much noise and few images: weak regularisation learns the noise.
  const Set fit = random_set(60, 30, 3, 4, 2), held_out = random_set(400, 30, 3, 5, 2);
  alone(3, [&](LinearProbe& probe) {
    const ChosenC chosen = choose_c(probe, fit.view(), held_out.view(), [](double) { return LbfgsProgress{}; });
    ASSERT_GE(chosen.tried.size(), 3U);
    ChosenC::Try best{.c = 0, .loss = INFINITY, .top1 = 0};
    for (const ChosenC::Try& one : chosen.tried)
      if (one.loss < best.loss) best = one;
    EXPECT_EQ(chosen.c, best.c);
    EXPECT_GT(best.top1, 0.6);
    EXPECT_EQ(chosen.weights.size(), 3U * 31);
    EXPECT_LT(chosen.c, 100);
    // Two values in a row that are no better end the search, not one.
    EXPECT_EQ(chosen.tried[chosen.tried.size() - 3].c, best.c);
  });
}

TEST(LinearProbe, RanksAndThreadsChangeNoBit) {
  const Set set = random_set(333, 19, 5, 1), queries = random_set(77, 19, 5, 2);
  std::vector<double> expected;
  int64_t correct = 0;
  for (int ranks : {1, 2, 3, 8}) {
    for (int threads : {1, 3}) {
      run_ranks(ranks, [&](Collectives& collectives) {
        LinearProbe probe(CpuExec{.threads = threads}, collectives, 5);
        const ProbeSolution solution = probe.solve(set.view(), 1, {.tolerance = 1e-7, .most_iterations = 500});
        const ProbeScores scores = probe.score(solution, queries.view());
        if (ranks == 1 && threads == 1) {
          expected = solution.weights;
          correct = scores.top1_correct;
          EXPECT_GT(correct, 40);
        }
        EXPECT_EQ(solution.weights, expected) << ranks << " ranks, " << threads << " threads";
        EXPECT_EQ(scores.top1_correct, correct);
      });
    }
  }
}

}  // namespace
}  // namespace simclr
