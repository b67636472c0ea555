// The results of `evaluate` as text and as JSON. Neither contains ranks, threads or times: the same encoder and images
// give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "src/evaluate/knn.h"
#include "src/evaluate/linear_probe.h"

namespace simclr {

struct ProbeReport {
  double percent = 0;  // of the labels
  int64_t images = 0;  // labeled
  ChosenC chosen;      // tried is empty if C was given
  ProbeSolution solution;
  ProbeScores scores;
};

struct EvaluationReport {
  std::string checkpoint;
  int64_t step = 0, epoch = 0;
  std::string data;  // "cifar10"
  int64_t bank = 0, queries = 0, features = 0;
  std::vector<std::string> classes;
  double knn_temperature = 0;
  std::vector<int> wanted_k;
  std::vector<KnnResult> knn;  // by wanted_k
  double tolerance = 0;        // of the probe's gradient
  std::vector<ProbeReport> probes;
};

std::string describe(const EvaluationReport& report);
std::string describe_as_json(const EvaluationReport& report);

}  // namespace simclr
