// The training loop: one step after another until the last, a stop request or a failure. docs/walkthrough.md walks
// through one step. Built from parts that run.cpp puts together; owns none of them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/augment/batch_source.h"
#include "src/base/progress_line.h"
#include "src/comm/control_channel.h"
#include "src/comm/gradient_reducer.h"
#include "src/comm/heartbeat.h"
#include "src/comm/watchdog.h"
#include "src/data/sampler.h"
#include "src/loss/contrastive_loss.h"
#include "src/metrics/metrics_file.h"
#include "src/metrics/throughput.h"
#include "src/optim/gradient_norm.h"
#include "src/optim/schedule.h"
#include "src/train/journal.h"
#include "src/train/knn_evaluation.h"
#include "src/train/skipped_files.h"
#include "src/train/state_io.h"
#include "src/train/step_profile.h"

namespace simclr {

struct TrainerParts {
  const Settings& settings;
  Site site;
  Heartbeat& heartbeat;
  const SamplePlan& plan;
  BatchSource& loader;  // its first batch is that of first_step
  Model& model;
  ContrastiveLoss& loss;
  Optimizer& optimizer;
  const Schedule& schedule;
  StateIo& state;
  KnnEvaluation* knn = nullptr;                                               // none: not wanted
  MetricsFile* metrics = nullptr;                                             // rank 0 only
  Journal* journal = nullptr;                                                 // rank 0 only
  StepProfile* profile = nullptr;                                             // none: not wanted
  SkippedFiles* skipped = nullptr;                                            // none: no file can be passed over
  std::function<void(int64_t step, const std::string& checkpoint)> progress;  // after every step: the newest checkpoint
  ShardGeometry geometry;
  int64_t first_step = 0, total_steps = 0;
  double started_s = 0;  // of the run, by monotonic_seconds(): train.max_minutes counts from here
};

struct TrainOutcome {
  bool stopped = false;  // on request, with a checkpoint
  std::string reason;    // who asked
  int64_t step = 0;      // steps done
};

class Trainer {
 public:
  explicit Trainer(const TrainerParts& parts);

  // Collective. Throws AgreedError(kDiverged) when a loss or gradient was not finite; the weights are then those before
  // that step, and no checkpoint has been written since. What one rank alone cannot do (a line of metrics, a
  // checkpoint) ends the run on all ranks as an AgreedError two steps later, or at the end; no checkpoint is written in
  // between.
  TrainOutcome run();
  int64_t steps_done() const { return steps_done_; }

 private:
  // A step that is computed, or on its way: what its line in the log will say.
  struct PendingLine {
    int64_t step = 0, epoch = 0;
    double lr = 0, images_per_s = 0, data_wait_s = 0;
    std::unique_ptr<Readback> loss, gradient_square;  // one double each
  };

  void step();  // one update
  const Batch& next_batch();
  void flag_bad_numbers(const double* loss);  // in the loss and in any gradient
  void queue_line(double learning_rate, const Batch& batch, const double* loss, const double* gradient_square);
  void log_until(int64_t step);  // the lines of all steps up to this one; waits for their losses
  void log_line(PendingLine& line);
  bool went_non_finite();  // waits for the device; for the moments that do so anyway
  void append_metrics(const std::string& line, Journal::Point point);
  void keep_error(const std::function<void()>& work);  // of this rank alone, no part of the computation
  void post_control_word();
  void look_at_the_clock(ControlWord& word);
  std::optional<TrainOutcome> act_on(const Decision& decision);
  void evaluate();
  // Logs them, warns of a collapse, adds them to the line of metrics.
  void look_at_embeddings(const EmbeddingStatistics& geometry, std::vector<std::pair<std::string, double>>& fields);
  void save();
  std::string checkpoint_name() const;   // the last one, for messages
  bool due(int64_t every_epochs) const;  // at the end of every so many epochs, and after the last step
  std::optional<TrainOutcome> after_step();

  TrainerParts p_;
  ControlChannel control_;
  GradientReducer reducer_;
  ProgressLine progress_;
  Throughput throughput_;
  GradientNorm gradient_norm_;
  Buffer grad_z_memory_;
  Matrix grad_z_;      // [rows of this rank, C]
  Buffer non_finite_;  // one int on the device; sticks once set: the updates then do nothing
  int64_t log_lag_;    // steps that the log stays behind: as many as the control word on a GPU, none on the CPU
  std::array<PendingLine, ControlChannel::kDelay + 1> lines_;  // by step mod 3
  double waited_s_ = 0, stepped_s_ = 0;                        // for images; in all: since the last line of the log
  int64_t lines_logged_;                                       // steps
  int64_t steps_done_ = 0;
  double last_save_s_;          // by the clock of this rank; rank 0's counts
  bool save_asked_ = false;     // the control word has asked for the next checkpoint
  std::optional<Error> error_;  // the first that keep_error caught
};

}  // namespace simclr
