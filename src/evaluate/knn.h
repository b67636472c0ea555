// Weighted k-nearest-neighbor classification on frozen features, the common quick measure of a self-supervised encoder
// (Wu et al., "Unsupervised Feature Learning via Non-Parametric Instance Discrimination", CVPR 2018, section 3.4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/exec.h"
#include "kernels/common/numbers.h"
#include "kernels/common/views.h"
#include "src/base/beat.h"
#include "src/comm/collectives.h"

namespace simclr {

struct LabeledFeatures {
  ConstFloatMatrix features;        // [N, D], rows of unit length (normalize_features)
  std::span<const int32_t> labels;  // [N], >= 0
};

struct KnnParams {
  int k = 0;
  double temperature = 0;
};

struct KnnResult {
  int k = 0;  // the k used: the requested one, or the number of images in a smaller bank
  int64_t bank = 0, queries = 0;
  int64_t top1_correct = 0, top5_correct = 0;

  double top1() const { return as_double(top1_correct) / as_double(queries); }
  double top5() const { return as_double(top5_correct) / as_double(queries); }
};

// The k rows of the bank with the largest cosine s_i to a query vote for their class with exp(s_i / temperature):
//   score(c) = sum over the k neighbors i of class c of exp(s_i / temperature)       top-1: the class of largest score
// Of equal similarities, the lower row of the bank is nearer. Of equal scores, the lower class is first. A class without
// a vote is not a prediction, so top-5 may consist of fewer than five classes.
//
// Collective: every rank passes the same matrices, computes its share of the queries, and returns the same result, for
// any number of ranks and threads. Allocates 1 MiB per thread; not for use within a step. beat: between blocks of 64
// queries.
KnnResult evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                       const LabeledFeatures& queries, const KnnParams& params, const Beat& beat = no_beat);

// The same for several k at the cost of the largest: one result each, in the order of `ks`.
std::vector<KnnResult> evaluate_knn(const CpuExec& exec, Collectives& collectives, const LabeledFeatures& bank,
                                    const LabeledFeatures& queries, std::span<const int> ks, double temperature,
                                    const Beat& beat = no_beat);

// "top-1 0.5230 (523 of 1000), top-5 0.9410, k = 20"; names the requested k if a smaller one was used.
std::string describe(const KnnResult& result, const KnnParams& params);

}  // namespace simclr
