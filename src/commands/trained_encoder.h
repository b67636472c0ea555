// A trained encoder out of a checkpoint, ready to be shown images: what the commands that look at an encoder have in
// common. Any number of ranks, any device, no optimizer state. Collective: every rank does everything here at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/augment/make_sources.h"
#include "src/checkpoint/training_state.h"
#include "src/comm/topology.h"
#include "src/config/command_line.h"
#include "src/device/host_matrix.h"
#include "src/evaluate/feature_extractor.h"
#include "src/nn/model.h"
#include "src/runtime/runtime.h"
#include "src/train/recorded_plans.h"

namespace simclr {

// h, the representation [D], which downstream tasks use; or z, the projector's output [C], which the loss sees.
enum class EncoderOutput { kRepresentation, kEmbedding };

class TrainedEncoder {
 public:
  // Reads the checkpoint (a folder stands for the newest in it), starts the device, loads the weights. The settings are
  // those that the checkpoint was written with, changed by source.config and its overrides; run.device, run.threads and
  // run.precision are this machine's unless they are given. runtime outlives this. Throws AgreedError: kOutput for the
  // checkpoint, kUsage for the settings, kDevice.
  TrainedEncoder(const EncoderSource& source, Runtime& runtime);
  TrainedEncoder(const TrainedEncoder&) = delete;
  TrainedEncoder& operator=(const TrainedEncoder&) = delete;

  const Settings& settings() const { return settings_; }
  const CheckpointHeader& header() const { return header_; }     // step, environment, ...
  const std::string& checkpoint() const { return checkpoint_; }  // its path
  const Topology& topology() const { return runtime_.topology(); }
  RunContext context() const { return runtime_.context(); }
  bool is_first() const { return runtime_.is_first(); }
  Beat beat() const { return runtime_.beat(); }
  Model& model() { return *model_; }
  int64_t width(EncoderOutput output) const;
  // Images a call of the network takes on each rank. It goes in units whose size the settings fix, so that the bits
  // of a row depend neither on it nor on the number of ranks.
  int64_t call_images() const { return geometry_.local_rows(); }

  // How images are shown, with the normalization of training. Collective.
  const ViewParams& view();

  // The split that the settings name, the same images on all ranks. AgreedError(kData).
  std::unique_ptr<Dataset> open(Split split) const;
  // The labeled images that answer for those of the test split: the training split, but for sets that train on
  // images without labels.
  std::unique_ptr<Dataset> open_bank() const;

  // Outputs for all images, on every rank the same [N, width]; float32, not normalized. `name` for the progress
  // lines of rank 0. AgreedError(kDiverged) for a number that is not finite.
  FeatureMatrix encode(const Dataset& dataset, EncoderOutput output, const std::string& name);
  // The same without the whole matrix in memory: use(first image, rows [n, width], without gaps) on every
  // rank, in order; what it throws is agreed on.
  void encode_in_parts(const Dataset& dataset, EncoderOutput output, const std::string& name,
                       const std::function<void(int64_t first, ConstMatrix rows)>& use);

 private:
  void load_settings_and_header(const EncoderSource& source);
  void start_device();
  void make_model(int64_t batch);
  void load_weights();
  void require_same(const Dataset& dataset, const char* name) const;  // on all ranks
  FeatureSource feature_source(const Dataset& dataset, EncoderOutput output, EvaluationSource& images);

  Runtime& runtime_;
  std::string checkpoint_;
  CheckpointHeader header_;
  Settings settings_;
  RecordedPlans plans_;  // rank 0's count
  ShardGeometry geometry_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ViewParams> view_;
  HostMatrix host_outputs_;
};

std::vector<int32_t> labels_of(const Dataset& dataset);

}  // namespace simclr
