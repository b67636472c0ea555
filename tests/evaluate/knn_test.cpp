// Hand-made neighbors and ties first, then a plain loop in double, then ranks and threads.
#include "src/evaluate/knn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "kernels/common/error.h"
#include "kernels/common/philox.h"
#include "src/evaluate/feature_extractor.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

// Rows of unit length with their labels.
struct Set {
  int64_t width = 2;
  std::vector<float> values;
  std::vector<int32_t> labels;

  LabeledFeatures view() const { return {{values.data(), static_cast<int64_t>(labels.size()), width, width}, labels}; }
};

// On the unit circle, the direction of each angle in degrees.
Set at_angles(const std::vector<double>& degrees, std::vector<int32_t> labels) {
  Set set{.width = 2, .values = {}, .labels = std::move(labels)};
  for (double angle : degrees) {
    set.values.push_back(static_cast<float>(std::cos(angle * M_PI / 180)));
    set.values.push_back(static_cast<float>(std::sin(angle * M_PI / 180)));
  }
  return set;
}

// Every row of class c lies near one of a few directions of c, so that neighbors are right often but not always.
Set random_set(int64_t count, int64_t width, int32_t classes, uint32_t seed) {
  Set set{.width = width, .values = {}, .labels = {}};
  for (int64_t i = 0; i < count; ++i) {
    PhiloxStream noise({seed, 1}, static_cast<uint32_t>(i), 0, 0);
    const int32_t label = static_cast<int32_t>(noise.below(static_cast<uint32_t>(classes)));
    PhiloxStream center({7, 7}, static_cast<uint32_t>(label), noise.below(3), 0);
    for (int64_t j = 0; j < width; ++j) set.values.push_back(center.uniform(-1, 1) + noise.uniform(-4, 4));
    set.labels.push_back(label);
  }
  normalize_features(CpuExec{}, {set.values.data(), count, width, width});
  return set;
}

KnnResult evaluate(const Set& bank, const Set& queries, const KnnParams& params, int ranks = 1, int threads = 1) {
  KnnResult result;
  run_ranks(ranks, [&](Collectives& collectives) {
    const KnnResult own = evaluate_knn(CpuExec{.threads = threads}, collectives, bank.view(), queries.view(), params);
    if (collectives.rank() == ranks - 1) result = own;
  });
  return result;
}

TEST(Knn, ByHand) {
  // Neighbors of 0 degrees: 10 (class 1), 20 (class 0), 30 (class 0); 180 is far.
  const Set bank = at_angles({20, 10, 30, 180}, {0, 1, 0, 2});
  const auto class_at_0 = [&](int32_t label, const KnnParams& params) {
    return evaluate(bank, at_angles({0}, {label}), params).top1_correct == 1;
  };
  EXPECT_TRUE(class_at_0(1, {.k = 1, .temperature = 1}));
  // exp(10 cos 10) = 18,922 against exp(10 cos 20) + exp(10 cos 30) = 17,820
  EXPECT_TRUE(class_at_0(1, {.k = 3, .temperature = 0.1}));
  // exp(cos 10) = 2.68 against exp(cos 20) + exp(cos 30) = 4.94
  EXPECT_TRUE(class_at_0(0, {.k = 3, .temperature = 1}));
}

TEST(Knn, CountsTopFive) {
  // Six classes at growing distance: the true class is the fifth, then the sixth.
  const Set bank = at_angles({10, 20, 30, 40, 50, 60}, {5, 4, 3, 2, 1, 0});
  const KnnParams params{.k = 6, .temperature = 0.1};
  EXPECT_EQ(evaluate(bank, at_angles({0}, {5}), params).top1_correct, 1);
  EXPECT_EQ(evaluate(bank, at_angles({0}, {1}), params).top1_correct, 0);
  EXPECT_EQ(evaluate(bank, at_angles({0}, {1}), params).top5_correct, 1);
  EXPECT_EQ(evaluate(bank, at_angles({0}, {0}), params).top5_correct, 0);
  EXPECT_EQ(evaluate(bank, at_angles({0}, {6}), params).top5_correct, 0) << "a class that the bank does not have";
  const KnnParams three{.k = 3, .temperature = 0.1};
  EXPECT_EQ(evaluate(bank, at_angles({0}, {0}), three).top5_correct, 0) << "a class without a neighbor is none";
}

TEST(Knn, EqualSimilaritiesTakeTheLowerRow) {
  const Set bank = at_angles({90, 30, 30, 30}, {3, 2, 1, 0});
  EXPECT_EQ(evaluate(bank, at_angles({0}, {2}), {.k = 1, .temperature = 0.1}).top1_correct, 1);
  // Of two equal ones that were near, the higher row makes place for a nearer one.
  const Set later = at_angles({30, 30, 10}, {0, 1, 2});
  EXPECT_EQ(evaluate(later, at_angles({0}, {0}), {.k = 2, .temperature = 0.1}).top5_correct, 1);
  EXPECT_EQ(evaluate(later, at_angles({0}, {1}), {.k = 2, .temperature = 0.1}).top5_correct, 0);
}

TEST(Knn, EqualScoresTakeTheLowerClass) {
  const Set bank = at_angles({30, 30}, {2, 1});
  EXPECT_EQ(evaluate(bank, at_angles({0}, {1}), {.k = 2, .temperature = 0.1}).top1_correct, 1);
  EXPECT_EQ(evaluate(bank, at_angles({0}, {2}), {.k = 2, .temperature = 0.1}).top5_correct, 1);
}

TEST(Knn, ASmallBankLowersKAndSaysSo) {
  const Set bank = at_angles({0, 90}, {0, 1});
  const KnnParams params{.k = 20, .temperature = 0.1};
  const KnnResult result = evaluate(bank, at_angles({1, 89, 91}, {0, 1, 0}), params);
  EXPECT_EQ(result.k, 2);
  EXPECT_EQ(result.top1_correct, 2);
  EXPECT_EQ(result.top5_correct, 3);
  EXPECT_EQ(describe(result, params),
            "top-1 0.6667 (2 of 3), top-5 1.0000, k = 2 instead of 20: the bank has only 2 images");
}

TEST(Knn, ALowTemperatureDoesNotOverflow) {
  const Set bank = at_angles({10, 20, 21}, {1, 0, 0});
  EXPECT_EQ(evaluate(bank, at_angles({0}, {1}), {.k = 3, .temperature = 1e-4}).top1_correct, 1);
}

TEST(Knn, ARowOfZerosIsLegal) {
  Set bank = at_angles({10, 200}, {0, 1});
  bank.values[2] = bank.values[3] = 0;
  EXPECT_EQ(evaluate(bank, at_angles({0}, {0}), {.k = 1, .temperature = 0.1}).top1_correct, 1);
}

TEST(Knn, RefusesWhatIsNotNormalized) {
  Set bank = at_angles({10, 20}, {0, 1});
  const Set query = at_angles({0}, {0});
  for (float bad : {2.0F, std::nanf("")}) {
    bank.values[3] = bad;
    EXPECT_THROW(evaluate(bank, query, {.k = 1, .temperature = 0.1}), Error);
  }
}

// The definition again, in double and without blocks.
KnnResult reference(const Set& bank, const Set& queries, const KnnParams& params) {
  KnnResult result{.k = params.k, .bank = bank.view().features.rows, .queries = queries.view().features.rows};
  for (int64_t q = 0; q < result.queries; ++q) {
    std::vector<std::pair<double, int64_t>> all;  // (-similarity, row): sorts as wanted
    for (int64_t i = 0; i < result.bank; ++i) {
      double s = 0;
      for (int64_t j = 0; j < bank.width; ++j) {
        s += static_cast<double>(queries.view().features.row(q)[j]) * bank.view().features.row(i)[j];
      }
      all.emplace_back(-s, i);
    }
    std::sort(all.begin(), all.end());
    std::map<int32_t, double> scores;
    for (int i = 0; i < params.k; ++i) {
      scores[bank.labels[all[i].second]] += std::exp(-all[i].first / params.temperature);
    }
    std::vector<std::pair<double, int32_t>> ranking;
    for (const auto& [label, score] : scores) ranking.emplace_back(-score, label);
    std::sort(ranking.begin(), ranking.end());
    for (size_t i = 0; i < std::min<size_t>(5, ranking.size()); ++i) {
      if (ranking[i].second != queries.labels[q]) continue;
      result.top5_correct += 1;
      result.top1_correct += i == 0 ? 1 : 0;
    }
  }
  return result;
}

// Sizes around the blocks of 64 queries and 4096 rows. Float and double similarities differ by 1e-7; that two scores of
// these fixed sets are nearer than that would show as a difference of one, which it does not.
TEST(Knn, EqualsThePlainLoop) {
  const KnnParams params{.k = 15, .temperature = 0.1};
  for (int64_t bank_size : {15, 100, 4096, 4097, 9000}) {
    for (int64_t query_size : {1, 63, 65, 129}) {
      const Set bank = random_set(bank_size, 33, 12, 1), queries = random_set(query_size, 33, 12, 2);
      const KnnResult expected = reference(bank, queries, params);
      const KnnResult result = evaluate(bank, queries, params);
      EXPECT_EQ(result.top1_correct, expected.top1_correct) << bank_size << " " << query_size;
      EXPECT_EQ(result.top5_correct, expected.top5_correct) << bank_size << " " << query_size;
      if (bank_size == 9000 && query_size == 129) {  // neither 0 nor all, or the test would say little
        EXPECT_GT(expected.top1_correct, 13);
        EXPECT_LT(expected.top1_correct, expected.top5_correct);
        EXPECT_LT(expected.top5_correct, 129);
      }
    }
  }
}

TEST(Knn, RanksAndThreadsChangeNothing) {
  const KnnParams params{.k = 20, .temperature = 0.1};
  const Set bank = random_set(5000, 32, 12, 1), queries = random_set(300, 32, 12, 2);
  const KnnResult one = evaluate(bank, queries, params);
  EXPECT_EQ(one.queries, 300);
  for (int ranks : {1, 2, 3, 4, 8}) {
    for (int threads : {1, 3}) {
      const KnnResult result = evaluate(bank, queries, params, ranks, threads);
      EXPECT_EQ(result.queries, one.queries);
      EXPECT_EQ(result.top1_correct, one.top1_correct) << ranks << " ranks, " << threads << " threads";
      EXPECT_EQ(result.top5_correct, one.top5_correct) << ranks << " ranks, " << threads << " threads";
    }
  }
}

TEST(Knn, SeveralKAtOnceAreTheSame) {
  const Set bank = random_set(500, 16, 12, 1), queries = random_set(130, 16, 12, 2);
  const std::vector<int> ks = {20, 1, 1000, 5};
  run_ranks(2, [&](Collectives& collectives) {
    const auto results = evaluate_knn(CpuExec{}, collectives, bank.view(), queries.view(), ks, 0.1);
    ASSERT_EQ(results.size(), ks.size());
    for (size_t i = 0; i < ks.size(); ++i) {
      const KnnResult one = evaluate_knn(CpuExec{}, collectives, bank.view(), queries.view(), {ks[i], 0.1});
      EXPECT_EQ(results[i].k, std::min(ks[i], 500));
      EXPECT_EQ(results[i].top1_correct, one.top1_correct) << ks[i];
      EXPECT_EQ(results[i].top5_correct, one.top5_correct) << ks[i];
    }
    EXPECT_NE(results[2].top5_correct, results[3].top5_correct) << "k makes a difference here";
  });
}

TEST(Knn, BeatsOnTheCallingThreadAfterBlocksOfQueries) {
  const Set bank = random_set(50, 8, 3, 1), queries = random_set(200, 8, 3, 2);  // four blocks of 64
  for (int threads : {1, 2}) {
    run_ranks(1, [&](Collectives& collectives) {
      const auto caller = std::this_thread::get_id();
      int beats = 0;
      evaluate_knn(CpuExec{.threads = threads}, collectives, bank.view(), queries.view(), {.k = 3, .temperature = 0.1},
                   [&] {
                     EXPECT_EQ(std::this_thread::get_id(), caller);
                     ++beats;
                   });
      EXPECT_LE(beats, 4);
      EXPECT_TRUE(threads > 1 || beats == 4) << beats;
    });
  }
}

}  // namespace
}  // namespace simclr
