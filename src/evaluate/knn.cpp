// Products are computed in blocks of a fixed number of queries and bank rows, counted from row 0: the shapes of all
// calls, and so their bits, depend on the two matrices alone.
#include "src/evaluate/knn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/gemm.h"
#include "kernels/common/parallel.h"
#include "src/device/buffer.h"

namespace simclr {
namespace {

constexpr int64_t kQueryBlock = 64;
constexpr int64_t kBankBlock = 4096;

struct Neighbor {
  float similarity;
  int64_t row;  // of the bank
};

bool is_nearer(const Neighbor& a, const Neighbor& b) {
  return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
}

struct Correct {
  int64_t top1 = 0, top5 = 0;
};

void check(const LabeledFeatures& set, const char* name) {
  const ConstFloatMatrix& x = set.features;
  SIMCLR_CHECK(x.rows >= 1 && std::ssize(set.labels) == x.rows, "{}: {} rows, {} labels", name, x.rows,
               set.labels.size());
  for (int64_t row = 0; row < x.rows; ++row) {
    double square = 0;
    for (int64_t col = 0; col < x.cols; ++col) square += as_double(x.row(row)[col]) * x.row(row)[col];
    // 0: the features were 0 before normalization. The comparison is false for NaN.
    SIMCLR_CHECK(square == 0 || std::abs(square - 1) < 1e-3, "{}: row {} has length {}", name, row, std::sqrt(square));
    SIMCLR_CHECK(set.labels[row] >= 0, "{}: label of row {}", name, row);
  }
}

// Keeps the k nearest candidates in a heap whose front is the farthest. Candidates are offered in ascending order of
// rows, so one with the similarity of the farthest is not nearer.
void offer(std::vector<Neighbor>& nearest, size_t k, const Neighbor& candidate) {
  if (nearest.size() == k) {
    if (candidate.similarity <= nearest.front().similarity) return;
    std::pop_heap(nearest.begin(), nearest.end(), is_nearer);
    nearest.pop_back();
  }
  nearest.push_back(candidate);
  std::push_heap(nearest.begin(), nearest.end(), is_nearer);
}

// Number of classes ranked before the true one: higher scores, or equal scores and lower classes; -1 if no neighbor has
// the true class. nearest: nearest first, which is the order of the sums. scores [classes]: scratch.
int64_t rank_of_class(std::span<const Neighbor> nearest, std::span<const int32_t> labels, double temperature,
                      int32_t true_class, std::vector<double>& scores) {
  std::fill(scores.begin(), scores.end(), -1.0);  // no vote
  for (const Neighbor& neighbor : nearest) {
    double& score = scores[labels[neighbor.row]];
    // exp((s - s_max) / temperature): one factor for all classes, and no overflow at low temperatures.
    const double vote = std::exp((as_double(neighbor.similarity) - nearest.front().similarity) / temperature);
    score = std::max(score, 0.0) + vote;
  }
  const size_t truth = true_class;
  if (truth >= scores.size() || scores[truth] < 0) return -1;
  int64_t before = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (scores[c] > scores[truth] || (scores[c] == scores[truth] && c < truth)) ++before;
  }
  return before;
}

// Parameters of the votes.
struct Vote {
  std::span<const int> ks;
  double temperature;
  int64_t classes;

  int most() const { return *std::max_element(ks.begin(), ks.end()); }
};

// Classifies queries [first, first + count) and adds to correct [ks]. similarities: scratch [kQueryBlock, kBankBlock].
void classify_block(const LabeledFeatures& bank, const LabeledFeatures& queries, int64_t first, int64_t count,
                    const Vote& vote, float* similarities, std::span<Correct> correct) {
  const size_t most = vote.most();
  std::vector<std::vector<Neighbor>> nearest(count);
  const ConstFloatMatrix rows = queries.features.slice(first, count);  // [count, D]
  for (int64_t begin = 0; begin < bank.features.rows; begin += kBankBlock) {
    const int64_t size = std::min(kBankBlock, bank.features.rows - begin);
    const FloatMatrix s{similarities, count, size, kBankBlock};  // [count, size] = queries x bank^T
    gemm(rows, Op::kNone, bank.features.slice(begin, size), Op::kTranspose, {}, s);
    for (int64_t q = 0; q < count; ++q) {
      std::vector<Neighbor>& heap = nearest[q];
      for (int64_t j = 0; j < size; ++j) offer(heap, most, {s.row(q)[j], begin + j});
    }
  }
  std::vector<double> scores(vote.classes);
  for (int64_t q = 0; q < count; ++q) {
    std::vector<Neighbor>& all = nearest[q];
    std::sort(all.begin(), all.end(), is_nearer);
    for (size_t i = 0; i < vote.ks.size(); ++i) {
      const auto voters = std::span<const Neighbor>(all).first(vote.ks[i]);
      const int64_t rank = rank_of_class(voters, bank.labels, vote.temperature, queries.labels[first + q], scores);
      correct[i].top1 += rank == 0 ? 1 : 0;
      correct[i].top5 += rank >= 0 && rank < 5 ? 1 : 0;
    }
  }
}

// Classifies this rank's consecutive run of query blocks; returns the counts for each k.
std::vector<Correct> classify_share(const CpuExec& exec, const Collectives& collectives, const LabeledFeatures& bank,
                                    const LabeledFeatures& queries, const Vote& vote, const Beat& beat) {
  const int64_t blocks = (queries.features.rows + kQueryBlock - 1) / kQueryBlock;
  const int64_t share = (blocks + collectives.size() - 1) / collectives.size();
  const int64_t first_block = std::min(collectives.rank() * share, blocks);
  const int64_t own_blocks = std::min(share, blocks - first_block);

  constexpr int64_t kScratchFloats = kQueryBlock * kBankBlock;
  const Buffer scratch(exec.threads * kScratchFloats * sizeof(float));
  const size_t count_of_k = vote.ks.size();
  std::vector<Correct> per_block(own_blocks * count_of_k);  // [blocks, ks]
  parallel_for(exec, own_blocks, [&](int64_t block, int thread) {
    const int64_t first = (first_block + block) * kQueryBlock;
    const int64_t count = std::min(kQueryBlock, queries.features.rows - first);
    classify_block(bank, queries, first, count, vote, scratch.as<float>().data() + thread * kScratchFloats,
                   std::span(per_block).subspan(block * count_of_k, count_of_k));
    if (thread == 0) beat();  // the calling thread
  });
  std::vector<Correct> sums(count_of_k);
  for (size_t i = 0; i < per_block.size(); ++i) {
    sums[i % count_of_k].top1 += per_block[i].top1;
    sums[i % count_of_k].top5 += per_block[i].top5;
  }
  return sums;
}

}  // namespace

std::vector<KnnResult> evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                                    const LabeledFeatures& queries, std::span<const int> ks, double temperature,
                                    const Beat& beat) {
  SIMCLR_CHECK(!ks.empty() && *std::min_element(ks.begin(), ks.end()) >= 1 && temperature > 0,
               "k is {}, temperature {}", ks.empty() ? 0 : *std::min_element(ks.begin(), ks.end()), temperature);
  SIMCLR_CHECK(bank.features.cols == queries.features.cols, "features of {} and {}", bank.features.cols,
               queries.features.cols);
  check(bank, "bank");
  check(queries, "queries");

  std::vector<int> used(ks.begin(), ks.end());
  for (int& k : used) k = static_cast<int>(std::min<int64_t>(k, bank.features.rows));
  const Vote vote{.ks = used,
                  .temperature = temperature,
                  .classes = int64_t{*std::max_element(bank.labels.begin(), bank.labels.end())} + 1};
  const std::vector<Correct> own = classify_share(exec, collectives, bank, queries, vote, beat);

  // Counts are gathered as bytes and summed as integers, in any order.
  std::vector<Correct> all(own.size() * collectives.size());  // [W, ks]
  collectives.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::vector<KnnResult> results(used.size());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = {.k = used[i], .bank = bank.features.rows, .queries = queries.features.rows};
    for (size_t r = i; r < all.size(); r += used.size()) {
      results[i].top1_correct += all[r].top1;
      results[i].top5_correct += all[r].top5;
    }
  }
  return results;
}

KnnResult evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                       const LabeledFeatures& queries, const KnnParams& params, const Beat& beat) {
  const int ks[] = {params.k};
  return evaluate_knn(exec, collectives, bank, queries, ks, params.temperature, beat)[0];
}

std::string describe(const KnnResult& result, const KnnParams& params) {
  std::string text = fmt::format("top-1 {:.4f} ({} of {}), top-5 {:.4f}, k = {}", result.top1(), result.top1_correct,
                                 result.queries, result.top5(), result.k);
  if (result.k < params.k) text += fmt::format(" instead of {}: the bank has only {} images", params.k, result.bank);
  return text;
}

}  // namespace simclr
