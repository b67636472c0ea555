#include "src/train/step_log.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/numbers.h"
#include "src/base/log.h"
#include "src/comm/heartbeat.h"
#include "src/train/embedding_evaluation.h"

namespace simclr {
namespace {

constexpr int kThroughputWindow = 20;  // steps

double read_double(Readback& readback) {
  double value = 0;
  std::memcpy(&value, readback.wait(), sizeof value);
  return value;
}

}  // namespace

StepLog::StepLog(const TrainingSetup& setup, const RunContext& run, Files files, int64_t first_step)
    : setup_(setup),
      run_(run),
      files_(std::move(files)),
      progress_(first_step, setup.total_steps()),
      throughput_(kThroughputWindow, monotonic_seconds()),
      lag_(run.context.device().is_cpu() ? 0 : ControlChannel::kMostDelay),
      lines_written_(first_step) {
  for (PendingLine& line : lines_) {
    line.loss = run.context.device().make_readback(sizeof(double));
    line.gradient_square = run.context.device().make_readback(sizeof(double));
  }
}

void StepLog::queue(const QueuedStep& queued) {
  throughput_.step_done(setup_.geometry.global_images(), monotonic_seconds());
  PendingLine& line = line_of(queued.step);
  line.step = queued.step;
  line.epoch = queued.epoch;
  line.learning_rate = queued.learning_rate;
  line.images_per_s = throughput_.images_per_s();
  line.data_wait_s = queued.data_wait_s;
  line.loss->start(queued.loss);
  line.gradient_square->start(queued.gradient_square);
}

void StepLog::write_until(int64_t step) {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "log"});
  while (lines_written_ < step) write_line(line_of(++lines_written_));
}

void StepLog::write_line(PendingLine& line) {
  double loss = 0, gradient_square = 0;
  {
    const InsideCollective waiting(&run_.heartbeat);  // on a GPU: for the other ranks, as likely as for the device
    loss = read_double(*line.loss);
    gradient_square = read_double(*line.gradient_square);
  }
  if (run_.host.rank() != 0) return;
  const bool in_log = line.step % setup_.settings.log.every_steps == 0 || line.step == setup_.total_steps();
  append(format_metrics({.step = line.step,
                         .epoch = line.epoch,
                         .loss = loss,
                         .lr = line.learning_rate,
                         .images_per_s = line.images_per_s,
                         .data_wait_s = line.data_wait_s,
                         .extra = {{"grad_norm", std::sqrt(gradient_square)}}}),
         in_log ? Journal::Point::kReportAndTensorBoard : Journal::Point::kReport);
  write_progress(line, loss, in_log);
}

// With the share of the time that steps waited for images, of the steps since the last line in the log.
void StepLog::write_progress(const PendingLine& line, double loss, bool in_log) {
  waited_s_ += line.data_wait_s;
  stepped_s_ += as_double(setup_.geometry.global_images()) / std::max(line.images_per_s, 1e-9);
  const auto text = fmt::format("epoch {}  loss {:.4f}  lr {:.3g}  {:.0f} images/s  data {:.0f} %", line.epoch, loss,
                                line.learning_rate, line.images_per_s, std::min(100 * waited_s_ / stepped_s_, 100.0));
  if (in_log) waited_s_ = stepped_s_ = 0;
  in_log ? progress_.write(line.step, text) : progress_.rewrite(line.step, text);
}

void StepLog::append(const std::string& line, Journal::Point point) {
  if (files_.metrics && !error_.exists()) error_.record([&] { files_.metrics->append(line); });
  if (files_.journal && !error_.exists()) error_.record([&] { files_.journal->add_line(line, point); });
}

void StepLog::write_accuracy(int64_t step, const KnnResult& result, const std::string& text) const {
  log_info("step {}: k-NN on {} test images: {}", step, result.queries, text);
}

void StepLog::add_images(const EvaluationFeatures& features, const Beat& beat) {
  if (!files_.journal || error_.exists()) return;
  error_.record([&] { files_.journal->add_evaluation(features, beat); });
}

void StepLog::write_evaluation(int64_t step, int64_t epoch, const KnnResult& result,
                               const std::optional<EmbeddingStatistics>& embeddings) {
  std::vector<std::pair<std::string, double>> fields = {{"knn_top1", result.top1()}, {"knn_top5", result.top5()}};
  if (embeddings) {
    log_info("step {}: embeddings: {}", step, describe(*embeddings, setup_.settings.model.projector.output));
    if (step > 0) warn_of_collapse(step, *embeddings);
    fields.insert(fields.end(), {{"alignment", embeddings->alignment},
                                 {"uniformity", embeddings->uniformity},
                                 {"effective_rank", embeddings->effective_rank}});
  }
  append(format_metrics(step, epoch, fields), Journal::Point::kReportAndTensorBoard);
  if (!error_.exists()) error_.record([&] { write_report("running", step); });
}

void StepLog::warn_of_collapse(int64_t step, const EmbeddingStatistics& embeddings) const {
  const int64_t columns = setup_.settings.model.projector.output;
  if (!(embeddings.effective_rank < kCollapsedRank) || columns <= 2) return;
  log_warning(
      "step {}: the embeddings have collapsed to little more than one line: their effective rank is {:.1f} of {}; "
      "lower optimizer.base_lr, warm up longer or use stronger augmentations",
      step, embeddings.effective_rank, columns);
}

void StepLog::sync() {
  if (files_.metrics) files_.metrics->sync();
  if (files_.journal) files_.journal->sync();
}

void StepLog::write_report(const std::string& state, int64_t step) {
  if (files_.journal) files_.journal->write_report(state, step);
}

}  // namespace simclr
