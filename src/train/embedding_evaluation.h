// Alignment, uniformity and effective rank of the embeddings during training, from two fixed random views each of up to
// 512 test images, through encoder and projector in evaluation mode. Needs no labels; no influence on training.
#pragma once

#include <memory>
#include <string>

#include "src/augment/evaluation_source.h"
#include "src/device/host_matrix.h"
#include "src/evaluate/embedding_statistics.h"
#include "src/train/training_setup.h"

namespace simclr {

class EmbeddingEvaluation {
 public:
  static constexpr int64_t kMostImages = 512;

  // The references outlive this. beat: while image sizes are read.
  EmbeddingEvaluation(TrainingSetup& setup, const RunContext& run, const Beat& beat = no_beat);

  // Collective. The same on every rank, for every number of ranks and threads. before_call: FeatureSource's.
  EmbeddingStatistics run(const Beat& beat, const std::function<void()>& before_call = {});

 private:
  RunContext run_;
  Model& model_;
  const CpuExec host_exec_;
  const int64_t columns_;  // C
  const int64_t views_;    // 2 for each image
  std::unique_ptr<EvaluationSource> source_;
  HostMatrix host_embeddings_;
};

// "alignment 0.312, uniformity -2.81, effective rank 43.7 of 128"
std::string describe(const EmbeddingStatistics& statistics, int64_t columns);

}  // namespace simclr
