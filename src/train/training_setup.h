// What a run computes with: data sets, sample plan, network, loss, optimizer and schedule, each built from those above it.
// The same on every rank except for the shards that a rank owns. Collective: all ranks build it together.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/augment/view_params.h"
#include "src/base/beat.h"
#include "src/comm/topology.h"
#include "src/data/dataset.h"
#include "src/data/sampler.h"
#include "src/loss/contrastive_loss.h"
#include "src/nn/model.h"
#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"
#include "src/runtime/run_context.h"
#include "src/train/recorded_plans.h"

namespace simclr {

struct TrainingSetup {
  // Throws AgreedError: kData for a data set that cannot be used or cannot fill one batch. beat: while the data are
  // read and hashed, and between the plans of convolutions. plans: of the checkpoint that the run resumes from; rank
  // 0's count.
  TrainingSetup(const Settings& settings, const Topology& topology, const RunContext& run, const Beat& beat = no_beat,
                const std::optional<RecordedPlans>& plans = std::nullopt);
  TrainingSetup(const TrainingSetup&) = delete;
  TrainingSetup& operator=(const TrainingSetup&) = delete;

  int64_t total_steps() const;
  // The labeled images that test images are compared with.
  const Dataset& bank() const { return bank_set ? *bank_set : *train_set; }

  const Settings& settings;
  std::unique_ptr<Dataset> train_set, test_set, bank_set;  // bank_set: null where the training split is the bank
  std::string data_sha256;
  ViewParams view;
  ShardGeometry geometry;
  std::unique_ptr<SamplePlan> plan;
  Context& context;
  int workers;  // data.workers, with auto resolved
  Model model;
  std::unique_ptr<ContrastiveLoss> loss;
  std::unique_ptr<Optimizer> optimizer;
  Schedule schedule;
};

}  // namespace simclr
