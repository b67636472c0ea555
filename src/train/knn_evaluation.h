// k-NN accuracy of the current encoder: features of bank and test images in evaluation mode, then the vote.
// No influence on training.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/augment/make_sources.h"
#include "src/device/host_matrix.h"
#include "src/evaluate/feature_extractor.h"
#include "src/evaluate/knn.h"
#include "src/report/evaluation_view.h"
#include "src/train/embedding_evaluation.h"
#include "src/train/training_setup.h"

namespace simclr {

// Receives the features of an evaluation while they exist; the caller sets their step.
using SeeFeatures = std::function<void(EvaluationFeatures)>;

std::vector<int32_t> labels_of(const Dataset& dataset);

// The reason why these data sets have no k-NN accuracy; "" if they have one.
std::string reason_without_knn(const TrainingSetup& setup);

class KnnEvaluation {
 public:
  // The references outlive this. Images go through the network in calls of the training step's shape: the bits of a
  // shard of 2n images depend on nothing outside it. beat: while image sizes are read.
  KnnEvaluation(TrainingSetup& setup, const RunContext& run, const Beat& beat = no_beat);

  // Collective. The same result on every rank, for every number of ranks and threads. beat: between calls of the
  // network and blocks of the vote. see: called before the vote, on this rank. before_call: FeatureSource's.
  KnnResult run(const Beat& beat, const SeeFeatures& see = {}, const std::function<void()>& before_call = {});
  std::string describe(const KnnResult& result) const;

  // Alignment, uniformity and effective rank for the same test images; none for fewer than two images. Collective.
  std::optional<EmbeddingStatistics> measure_embeddings(const Beat& beat,
                                                        const std::function<void()>& before_call = {});

 private:
  struct Split {
    const Dataset& dataset;
    std::unique_ptr<EvaluationSource> source;
    std::vector<int32_t> labels;
  };
  FeatureMatrix features_of(Split& split, const Beat& beat, const std::function<void()>& before_call);

  RunContext run_;
  Model& model_;
  CpuExec host_exec_;  // the vote runs on the host
  KnnParams params_;
  Split bank_, test_;
  HostMatrix host_features_;
  std::optional<EmbeddingEvaluation> embeddings_;
};

}  // namespace simclr
