// Weighted k-nearest-neighbor classification on frozen features, the usual quick measure of a self-supervised encoder
// (Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018, section 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "src/base/beat.h"
#include "src/comm/collectives.h"

namespace simclr {

struct LabeledFeatures {
  ConstMatrix features;             // [N, D], rows of unit length (normalize_features)
  std::span<const int32_t> labels;  // [N], >= 0
};

struct KnnParams {
  int k = 0;
  double temperature = 0;
};

struct KnnResult {
  int k = 0;  // used: the wanted one, or the number of images in a smaller bank
  int64_t bank = 0, queries = 0;
  int64_t top1_correct = 0, top5_correct = 0;

  double top1() const { return static_cast<double>(top1_correct) / static_cast<double>(queries); }
  double top5() const { return static_cast<double>(top5_correct) / static_cast<double>(queries); }
};

// The k rows of the bank with the largest cosine s_i to a query vote for their class with exp(s_i / temperature);
//   score(c) = sum over the k neighbors i of class c of exp(s_i / temperature)       top-1: the class of largest score
// Equal similarities: the lower row of the bank is nearer. Equal scores: the lower class is first. A class that none of
// the neighbors has is no prediction, so top-5 can be out of fewer than five classes.
//
// Collective: every rank passes the same matrices, takes its share of the queries, and gets the same result. Neither
// the number of ranks nor of threads changes it. Takes memory of its own, 1 MiB a thread; not for use within a step.
// beat: between blocks of 64 queries.
KnnResult evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                       const LabeledFeatures& queries, const KnnParams& params, const Beat& beat = no_beat);

// The same for several k at the price of the largest: one result each, in the order of `ks`.
std::vector<KnnResult> evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                                    const LabeledFeatures& queries, std::span<const int> ks, double temperature,
                                    const Beat& beat = no_beat);

// "top-1 0.5230 (523 of 1000), top-5 0.9410, k = 20"; says so when k had to be lowered.
std::string describe(const KnnResult& result, const KnnParams& params);

}  // namespace simclr
