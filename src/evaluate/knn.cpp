// Products run in blocks of a fixed number of queries and bank rows, counted from row 0: the shape of every call, and
// so its bits, is a function of the two matrices alone.
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

struct Neighbour {
  float similarity;
  int64_t row;  // of the bank
};

bool is_nearer(const Neighbour& a, const Neighbour& b) {
  return a.similarity != b.similarity ? a.similarity > b.similarity : a.row < b.row;
}

struct Correct {
  int64_t top1 = 0, top5 = 0;
};

void check(const LabelledFeatures& set, const char* name) {
  const ConstMatrix& x = set.features;
  SIMCLR_CHECK(x.rows >= 1 && static_cast<int64_t>(set.labels.size()) == x.rows, "{}: {} rows, {} labels", name, x.rows,
               set.labels.size());
  for (int64_t row = 0; row < x.rows; ++row) {
    double square = 0;
    for (int64_t col = 0; col < x.cols; ++col) square += static_cast<double>(x.row(row)[col]) * x.row(row)[col];
    // 0 is a row that was 0 before; the comparison is false for NaN.
    SIMCLR_CHECK(square == 0 || std::abs(square - 1) < 1e-3, "{}: row {} has length {}", name, row, std::sqrt(square));
    SIMCLR_CHECK(set.labels[static_cast<size_t>(row)] >= 0, "{}: label of row {}", name, row);
  }
}

// Keeps the k nearest of what it is offered in a heap whose front is the farthest. Rows come in ascending order, so a
// row as similar as the farthest is not nearer.
void offer(std::vector<Neighbour>& nearest, size_t k, const Neighbour& candidate) {
  if (nearest.size() == k) {
    if (candidate.similarity <= nearest.front().similarity) return;
    std::pop_heap(nearest.begin(), nearest.end(), is_nearer);
    nearest.pop_back();
  }
  nearest.push_back(candidate);
  std::push_heap(nearest.begin(), nearest.end(), is_nearer);
}

// Classes that score higher than the true one (or the same, and are lower); -1 when no neighbour has the true class.
// scores [classes] is scratch.
int64_t rank_of_class(std::vector<Neighbour>& nearest, std::span<const int32_t> labels, double temperature,
                      int32_t true_class, std::vector<double>& scores) {
  std::sort(nearest.begin(), nearest.end(), is_nearer);  // the order of the sums
  std::fill(scores.begin(), scores.end(), -1.0);         // no vote
  for (const Neighbour& neighbour : nearest) {
    double& score = scores[static_cast<size_t>(labels[static_cast<size_t>(neighbour.row)])];
    // exp((s - s_max) / temperature): one factor for all classes, and no overflow at low temperatures.
    const double vote =
        std::exp((static_cast<double>(neighbour.similarity) - nearest.front().similarity) / temperature);
    score = std::max(score, 0.0) + vote;
  }
  const size_t truth = static_cast<size_t>(true_class);
  if (truth >= scores.size() || scores[truth] < 0) return -1;
  int64_t before = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (scores[c] > scores[truth] || (scores[c] == scores[truth] && c < truth)) ++before;
  }
  return before;
}

// Queries [first, first + count); similarities: scratch [kQueryBlock, kBankBlock].
Correct classify_block(const LabelledFeatures& bank, const LabelledFeatures& queries, int64_t first, int64_t count,
                       int k, double temperature, int64_t classes, float* similarities) {
  std::vector<std::vector<Neighbour>> nearest(static_cast<size_t>(count));
  const ConstMatrix rows = queries.features.slice(first, count);  // [count, D]
  for (int64_t begin = 0; begin < bank.features.rows; begin += kBankBlock) {
    const int64_t size = std::min(kBankBlock, bank.features.rows - begin);
    const Matrix s{similarities, count, size, kBankBlock};  // [count, size] = queries x bank^T
    gemm(rows, Op::kNone, bank.features.slice(begin, size), Op::kTranspose, {}, s);
    for (int64_t q = 0; q < count; ++q) {
      std::vector<Neighbour>& heap = nearest[static_cast<size_t>(q)];
      for (int64_t j = 0; j < size; ++j) offer(heap, static_cast<size_t>(k), {s.row(q)[j], begin + j});
    }
  }
  Correct correct;
  std::vector<double> scores(static_cast<size_t>(classes));
  for (int64_t q = 0; q < count; ++q) {
    const int64_t rank = rank_of_class(nearest[static_cast<size_t>(q)], bank.labels, temperature,
                                       queries.labels[static_cast<size_t>(first + q)], scores);
    correct.top1 += rank == 0 ? 1 : 0;
    correct.top5 += rank >= 0 && rank < 5 ? 1 : 0;
  }
  return correct;
}

// This rank's consecutive run of query blocks.
Correct classify_share(const CpuExec& exec, const Collectives& collectives, const LabelledFeatures& bank,
                       const LabelledFeatures& queries, int k, double temperature, const Beat& beat) {
  const int64_t blocks = (queries.features.rows + kQueryBlock - 1) / kQueryBlock;
  const int64_t share = (blocks + collectives.size() - 1) / collectives.size();
  const int64_t first_block = std::min(collectives.rank() * share, blocks);
  const int64_t own_blocks = std::min(share, blocks - first_block);
  const int64_t classes = int64_t{*std::max_element(bank.labels.begin(), bank.labels.end())} + 1;

  constexpr int64_t kScratchFloats = kQueryBlock * kBankBlock;
  const Buffer scratch(static_cast<size_t>(exec.threads * kScratchFloats) * sizeof(float));
  std::vector<Correct> per_block(static_cast<size_t>(own_blocks));
  parallel_for(exec, own_blocks, [&](int64_t block, int thread) {
    const int64_t first = (first_block + block) * kQueryBlock;
    const int64_t count = std::min(kQueryBlock, queries.features.rows - first);
    per_block[static_cast<size_t>(block)] = classify_block(bank, queries, first, count, k, temperature, classes,
                                                           scratch.as<float>().data() + thread * kScratchFloats);
    if (thread == 0) beat();  // the calling thread
  });
  Correct sum;
  for (const Correct& correct : per_block) {
    sum.top1 += correct.top1;
    sum.top5 += correct.top5;
  }
  return sum;
}

}  // namespace

KnnResult evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabelledFeatures& bank,
                       const LabelledFeatures& queries, const KnnParams& params, const Beat& beat) {
  SIMCLR_CHECK(params.k >= 1 && params.temperature > 0, "k is {}, temperature {}", params.k, params.temperature);
  SIMCLR_CHECK(bank.features.cols == queries.features.cols, "features of {} and {}", bank.features.cols,
               queries.features.cols);
  check(bank, "bank");
  check(queries, "queries");

  KnnResult result;
  result.bank = bank.features.rows;
  result.queries = queries.features.rows;
  result.k = static_cast<int>(std::min<int64_t>(params.k, result.bank));
  const Correct own = classify_share(exec, collectives, bank, queries, result.k, params.temperature, beat);

  // Counts as bytes: integers, so the order of the sum does not matter, for any number of ranks.
  std::vector<Correct> all(static_cast<size_t>(collectives.size()));
  collectives.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  for (const Correct& correct : all) {
    result.top1_correct += correct.top1;
    result.top5_correct += correct.top5;
  }
  return result;
}

std::string describe(const KnnResult& result, const KnnParams& params) {
  std::string text = fmt::format("top-1 {:.4f} ({} of {}), top-5 {:.4f}, k = {}", result.top1(), result.top1_correct,
                                 result.queries, result.top5(), result.k);
  if (result.k < params.k) text += fmt::format(" instead of {}: the bank has no more pictures", params.k);
  return text;
}

}  // namespace simclr
