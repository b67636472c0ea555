// What rank 0 writes about the steps: lines on the console and in train.log, metrics.jsonl, TensorBoard's event file and
// report.html. The other ranks call the same functions and write nothing. Changes nothing that training sees.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/progress_line.h"
#include "src/comm/control_channel.h"
#include "src/evaluate/embedding_statistics.h"
#include "src/evaluate/knn.h"
#include "src/metrics/metrics_file.h"
#include "src/metrics/throughput.h"
#include "src/train/journal.h"
#include "src/train/rank_error.h"
#include "src/train/training_setup.h"

namespace simclr {

// A step that has been queued on the device; loss and the squared norm of the gradient are one double each there.
struct QueuedStep {
  int64_t step = 0;  // counts from 1
  int64_t epoch = 0;
  double learning_rate = 0, data_wait_s = 0;
  const double* loss = nullptr;
  const double* gradient_square = nullptr;
};

class StepLog {
 public:
  // Rank 0's; none of them on the other ranks.
  struct Files {
    std::optional<MetricsFile> metrics = {};
    std::unique_ptr<Journal> journal = {};
  };

  // setup and run outlive this.
  StepLog(const TrainingSetup& setup, const RunContext& run, Files files, int64_t first_step = 0);

  // Starts to read its numbers back; waits for nothing.
  void queue(const QueuedStep& queued);
  // Writes the lines whose numbers are there without a wait: on a GPU they are two steps late, as the control word.
  void write_ready(int64_t steps_done) { write_until(steps_done - lag_); }
  // Writes the lines of all steps up to this one; waits for their numbers.
  void write_until(int64_t step);

  // An evaluation after `step` steps: its accuracy in the log at once; its numbers in metrics.jsonl, TensorBoard and
  // the report, with a warning of collapsed embeddings.
  void write_accuracy(int64_t step, const KnnResult& result, const std::string& text) const;
  void add_images(const EvaluationFeatures& features, const Beat& beat);
  void write_evaluation(int64_t step, int64_t epoch, const KnnResult& result,
                        const std::optional<EmbeddingStatistics>& embeddings);

  // The time since the last step belongs to no step: an evaluation, a checkpoint.
  void leave_out_pause() { throughput_.leave_out_until(monotonic_seconds()); }
  void sync();  // metrics.jsonl and the event file, to the disk
  // state: "running", "finished", ...
  void write_report(const std::string& state, int64_t step);

  // An error in writing, or one that the trainer records: of this rank alone. No line follows it.
  RankError& error() { return error_; }

 private:
  struct PendingLine {
    int64_t step = 0, epoch = 0;
    double learning_rate = 0, images_per_s = 0, data_wait_s = 0;
    std::unique_ptr<Readback> loss, gradient_square;  // one double each
  };
  PendingLine& line_of(int64_t step) { return lines_.at(step % lines_.size()); }
  void write_line(PendingLine& line);
  void write_progress(const PendingLine& line, double loss, bool in_log);
  void append(const std::string& line, Journal::Point point);
  void warn_of_collapse(int64_t step, const EmbeddingStatistics& embeddings) const;

  const TrainingSetup& setup_;
  const RunContext run_;
  Files files_;
  RankError error_;
  ProgressLine progress_;
  Throughput throughput_;
  const int64_t lag_;                                              // steps
  std::array<PendingLine, ControlChannel::kMostDelay + 1> lines_;  // by step mod 3
  int64_t lines_written_;                                          // steps
  double waited_s_ = 0, stepped_s_ = 0;                            // for images; in all: since the last line of the log
};

}  // namespace simclr
