// The training loop: one step after another until the last, a stop request or a failure. docs/walkthrough.md walks
// through one step. run.cpp builds what it works with; it owns none of that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/augment/batch_source.h"
#include "src/comm/gradient_reducer.h"
#include "src/optim/gradient_norm.h"
#include "src/train/knn_evaluation.h"
#include "src/train/rank_control.h"
#include "src/train/skipped_files.h"
#include "src/train/state_io.h"
#include "src/train/step_log.h"
#include "src/train/step_profile.h"
#include "src/train/training_setup.h"

namespace simclr {

// What the loop works with besides the setup. Null: turned off.
struct TrainerServices {
  BatchSource& loader;  // its first batch is that of first_step
  StateIo& state;
  StepLog& log;
  KnnEvaluation* knn = nullptr;
  StepProfile* profile = nullptr;
  SkippedFiles* skipped = nullptr;
  std::function<void(int64_t step, const std::string& checkpoint)> progress;  // after every step: the newest checkpoint
  int64_t first_step = 0;                                                     // steps done before
  double started_s = 0;                                                       // of the run, by monotonic_seconds()
};

struct TrainOutcome {
  bool stopped = false;  // on request, with a checkpoint
  std::string reason;    // who asked
  int64_t step = 0;      // steps done
};

class Trainer {
 public:
  // Everything passed in outlives this.
  Trainer(TrainingSetup& setup, const RunContext& run, TrainerServices services);

  // Collective. Throws AgreedError(kDiverged) when a loss or gradient was not finite; the weights are then those before
  // that step, and no checkpoint has been written since. What one rank alone cannot do (a line of metrics, a
  // checkpoint) ends the run on all ranks as an AgreedError when the next control word is read, or at the end; no
  // checkpoint is written in between. A stop abandons the step or the evaluation under way where those take long.
  TrainOutcome run();
  int64_t steps_done() const { return steps_done_; }

 private:
  using StopReason = std::optional<std::string>;  // who asked for a stop, if any

  StopReason step();  // one update and what is due after it
  void compute_step();
  const Batch& next_batch();
  StopReason after_step();
  StopReason evaluate();
  void compute_evaluation();
  void save();
  void report_progress();                // the newest checkpoint whose save has ended
  bool due(int64_t every_epochs) const;  // at the end of every N epochs, and after the last step
  bool save_is_due(bool asked_for) const;
  int64_t epochs_done() const { return steps_done_ / setup_.plan->steps_per_epoch(); }

  TrainingSetup& setup_;
  const RunContext run_;
  const TrainerServices services_;
  const int64_t total_steps_;
  GradientReducer reducer_;
  GradientNorm gradient_norm_;
  RankError& error_;  // in the log, an evaluation or a checkpoint
  Buffer grad_z_memory_;
  Matrix grad_z_;  // [rows of this rank, C]
  NonFiniteFlag non_finite_;
  RankControl control_;
  int64_t steps_done_;
  int64_t saved_step_;           // of the newest checkpoint; before the first the one that the run started from
  bool evaluation_due_ = false;  // that of steps_done_ has been abandoned
};

}  // namespace simclr
