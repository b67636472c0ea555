// The encoder of a checkpoint, ready to encode images: shared by the commands that evaluate an encoder. Any number of
// ranks, any device, no optimizer state. Collective: all ranks call every function here together.
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

// h, the representation [D] for downstream tasks; or z, the projector's output [C], which enters the loss.
enum class EncoderOutput { kRepresentation, kEmbedding };

class TrainedEncoder {
 public:
  // Reads the checkpoint (of a folder: the newest in it), starts the device, loads the weights. The settings are those of
  // the checkpoint, changed by source.config and its overrides; run.device and run.threads have their defaults unless
  // they are given, and so does run.precision where this device lacks the checkpoint's. runtime outlives this. Throws AgreedError: kOutput for the
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
  // Images per call of the network on each rank: a multiple of a unit that the settings fix, so that the bits of a row
  // depend neither on it nor on the number of ranks.
  int64_t call_images() const { return geometry_.local_rows(); }

  // Resizing and the normalization of training.
  const ViewParams& view();

  // The split that the settings name, the same images on all ranks. AgreedError(kData).
  std::unique_ptr<Dataset> open(Split split) const;
  // The labeled images that test images are compared with: the training split, except for data sets that train on
  // unlabeled images.
  std::unique_ptr<Dataset> open_bank() const;

  // Outputs for all images, the same [N, width] on every rank; float32, not normalized. name: in the progress lines of
  // rank 0. AgreedError(kDiverged) for a number that is not finite.
  FeatureMatrix encode(const Dataset& dataset, EncoderOutput output, const std::string& name);
  // The same without the whole matrix in memory: calls use(first image, rows [n, width], without gaps) on every rank, in
  // order; an error in it is agreed on.
  void encode_in_parts(const Dataset& dataset, EncoderOutput output, const std::string& name,
                       const std::function<void(int64_t first, ConstFloatMatrix rows)>& use);

 private:
  void load_settings_and_header(const EncoderSource& source);
  void start_device();
  void make_model(int64_t batch);
  void load_weights();
  void require_same(const Dataset& dataset, const char* name) const;  // on all ranks
  FeatureSource feature_source(const Dataset& dataset, EncoderOutput output, EvaluationSource& images);

  Runtime& runtime_;
  std::string checkpoint_;
  std::shared_ptr<const SafetensorsFile> file_;  // on rank 0, until its weights are loaded
  CheckpointHeader header_;
  Settings settings_;
  RecordedPlans plans_;  // rank 0's count
  ShardGeometry geometry_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ViewParams> view_;
  HostMatrix host_outputs_;
};

}  // namespace simclr
