#include "src/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/optimizer_update/optimizer_update.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/collective_observer.h"
#include "src/comm/stop_signals.h"

namespace simclr {
namespace {

constexpr int kThroughputWindow = 20;  // steps

}  // namespace

Trainer::Trainer(const TrainerParts& parts)
    : p_(parts),
      control_(parts.site.collectives, parts.site.context),
      reducer_(parts.site.collectives),
      progress_(parts.first_step, parts.total_steps),
      throughput_(kThroughputWindow, monotonic_seconds()),
      gradient_norm_(parts.site.context, parts.model.store()),
      non_finite_(parts.site.context.allocate_elements<int>(1)),
      log_lag_(parts.site.context.device().is_cpu() ? 0 : ControlChannel::kDelay),
      lines_logged_(parts.first_step),
      steps_done_(parts.first_step),
      last_save_s_(monotonic_seconds()) {
  const int64_t columns = p_.settings.model.projector.output, stride = padded_cols(columns);
  Context& context = p_.site.context;
  grad_z_memory_ = context.allocate_storage(p_.geometry.local_rows() * stride);
  grad_z_ = {grad_z_memory_.as<float>().data(), p_.geometry.local_rows(), columns, stride, context.device().storage()};
  for (PendingLine& line : lines_) {
    line.loss = context.device().make_readback(sizeof(double));
    line.gradient_square = context.device().make_readback(sizeof(double));
  }
}

TrainOutcome Trainer::run() {
  if (steps_done_ == 0) evaluate();
  throughput_.leave_out_until(monotonic_seconds());
  std::optional<TrainOutcome> outcome;
  while (!outcome && steps_done_ < p_.total_steps) {
    step();
    outcome = after_step();
  }
  log_until(steps_done_);
  if (p_.profile) keep_error([&] { p_.profile->finish(); });
  keep_error([&] {
    p_.state.finish_save();
    p_.progress(steps_done_, p_.state.last_checkpoint());
  });
  for (const Decision& decision : control_.drain()) act_on(decision);  // a stop request comes too late to matter
  agree(p_.site.host, error_);                                         // one that came after the last control word
  return outcome.value_or(TrainOutcome{.stopped = false, .reason = "", .step = steps_done_});
}

void Trainer::step() {
  p_.heartbeat.beat(steps_done_, Phase::kTraining);
  if (p_.profile) p_.profile->begin_step(steps_done_ + 1);
  const std::span<float> gradients = p_.model.store().per_rank_gradients();
  const Batch& batch = next_batch();                     // [shards, 2n, 3, size, size]
  const ConstMatrix z = p_.model.forward(batch.images);  // [rows of this rank, C]
  const double* loss = p_.loss.forward(z);               // over the global batch
  p_.loss.backward(grad_z_);
  reducer_.begin(gradients);  // this rank's part of every gradient becomes the sum over ranks, in shard order
  p_.model.backward(grad_z_, [&](const Parameter& first) { reducer_.ready_from(first.grad - gradients.data()); });
  reducer_.finish();

  // Loss and gradients are the same on all ranks now, so all come to the same verdict without asking.
  const int* non_finite = non_finite_.as<int>().data();
  flag_bad_numbers(loss);
  const double* gradient_square = gradient_norm_.queue_square();
  const double learning_rate = p_.schedule.learning_rate(steps_done_);
  p_.optimizer.update(steps_done_, learning_rate, non_finite);
  p_.model.update_running_statistics(non_finite);

  ++steps_done_;
  queue_line(learning_rate, batch, loss, gradient_square);
  log_until(steps_done_ - log_lag_);
  post_control_word();
}

const Batch& Trainer::next_batch() {
  const ProfileSpan span(p_.site.context.profiler(), {OpKind::kData, "views", "wait"});
  return p_.loader.next();
}

void Trainer::flag_bad_numbers(const double* loss) {
  const std::span<const float> gradients = p_.model.store().gradients();
  const ProfileSpan span(p_.site.context.profiler(), {OpKind::kOptimizer, "gradients", "finite"},
                         [&] { return Work{.bytes = static_cast<double>(gradients.size_bytes())}; });
  const Exec& exec = p_.site.context.exec();
  int* non_finite = non_finite_.as<int>().data();
  flag_non_finite(exec, std::span(loss, 1), non_finite);
  flag_non_finite(exec, gradients, non_finite);
}

void Trainer::queue_line(double learning_rate, const Batch& batch, const double* loss, const double* gradient_square) {
  throughput_.step_done(p_.geometry.global_images(), monotonic_seconds());
  PendingLine& line = lines_[static_cast<size_t>(steps_done_) % lines_.size()];
  line.step = steps_done_;
  line.epoch = batch.epoch;
  line.lr = learning_rate;
  line.images_per_s = throughput_.images_per_s();
  line.data_wait_s = p_.loader.last_wait_s();
  line.loss->start(loss);
  line.gradient_square->start(gradient_square);
}

void Trainer::log_until(int64_t step) {
  const ProfileSpan span(p_.site.context.profiler(), {OpKind::kOther, "trainer", "log"});
  while (lines_logged_ < step) log_line(lines_[static_cast<size_t>(++lines_logged_) % lines_.size()]);
}

void Trainer::log_line(PendingLine& line) {
  double loss = 0, gradient_square = 0;
  {
    const InsideCollective waiting(&p_.heartbeat);  // on a GPU: for the other ranks, as likely as for the device
    std::memcpy(&loss, line.loss->wait(), sizeof loss);
    std::memcpy(&gradient_square, line.gradient_square->wait(), sizeof gradient_square);
  }
  if (p_.site.collectives.rank() != 0) return;
  const bool write = line.step % p_.settings.log.every_steps == 0 || line.step == p_.total_steps;
  append_metrics(format_metrics({.step = line.step,
                                 .epoch = line.epoch,
                                 .loss = loss,
                                 .lr = line.lr,
                                 .images_per_s = line.images_per_s,
                                 .data_wait_s = line.data_wait_s,
                                 .extra = {{"grad_norm", std::sqrt(gradient_square)}}}),
                 write ? Journal::Point::kReportAndTensorBoard : Journal::Point::kReport);
  // The share of the time that steps waited for images: of those since the last line that was written.
  waited_s_ += line.data_wait_s;
  stepped_s_ += static_cast<double>(p_.geometry.global_images()) / std::max(line.images_per_s, 1e-9);
  const auto text = fmt::format("epoch {}  loss {:.4f}  lr {:.3g}  {:.0f} images/s  data {:.0f} %", line.epoch, loss,
                                line.lr, line.images_per_s, std::min(100 * waited_s_ / stepped_s_, 100.0));
  if (write) waited_s_ = stepped_s_ = 0;
  write ? progress_.write(line.step, text) : progress_.rewrite(line.step, text);
}

bool Trainer::went_non_finite() {
  int flag = 0;
  const InsideCollective waiting(&p_.heartbeat);
  p_.site.context.device().download(&flag, non_finite_.data(), sizeof flag);
  return flag != 0;
}

void Trainer::append_metrics(const std::string& line, Journal::Point point) {
  if (p_.metrics && !error_) keep_error([&] { p_.metrics->append(line); });
  if (p_.journal && !error_) keep_error([&] { p_.journal->add_line(line, point); });
}

void Trainer::keep_error(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    if (error_) return;
    const Error error = as_error(std::current_exception());
    error_.emplace(error.code(), fmt::format("after step {}: {}", steps_done_, error.what()));
  }
}

void Trainer::post_control_word() {
  const ProfileSpan span(p_.site.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  ControlWord word{.step = steps_done_,
                   .stop_signal = stop_signal(),
                   .error_code = error_ ? static_cast<int32_t>(error_->code()) : 0};
  ControlChannel::OnDevice on_device{.non_finite = non_finite_.as<int>().data()};
  const int64_t every = p_.settings.train.check_every;
  if (every > 0 && steps_done_ % every == 0) {
    word.hash_due = 1;
    on_device.weights_hash = p_.state.queue_state_hash();
  }
  look_at_the_clock(word);
  control_.post(word, on_device);
}

// Clocks differ: one rank's decides for all.
void Trainer::look_at_the_clock(ControlWord& word) {
  if (p_.site.collectives.rank() != 0) return;
  const double now_s = monotonic_seconds();
  const double most_s = 60 * p_.settings.train.max_minutes, save_s = 60 * p_.settings.checkpoint.every_minutes;
  word.time_is_up = most_s > 0 && now_s - p_.started_s >= most_s ? 1 : 0;
  if (save_s <= 0 || save_asked_ || now_s - last_save_s_ < save_s) return;
  word.save_due = 1;
  save_asked_ = true;
}

std::optional<TrainOutcome> Trainer::act_on(const Decision& d) {
  if (d.non_finite()) {
    throw AgreedError(
        ExitCode::kDiverged,
        fmt::format("step {}: the loss or a gradient is not finite; the weights are those before it, the last "
                    "checkpoint is {}; lower optimizer.base_lr, warm up longer or {}",
                    d.step, checkpoint_name(),
                    p_.settings.loss.type == LossType::kInfoNce ? "raise loss.temperature" : "lower loss.scale"));
  }
  if (d.hashes_differ()) {
    const std::string drift = p_.state.describe_drift();
    throw AgreedError(
        ExitCode::kDevice,
        fmt::format(
            "{}; not as on rank 0: {}; a host or device that computes wrongly is likely: leave it out and resume "
            "from {}",
            d.describe_hashes(), drift.empty() ? "nothing any more" : drift, checkpoint_name()));
  }
  if (d.failed()) {
    agree(p_.site.host, error_);  // throws: the words were the same on all ranks
    SIMCLR_CHECK(false, "rank {} announced an error after step {} and has none", d.error_rank, d.step);
  }
  if (d.stop())
    return TrainOutcome{.stopped = true,
                        .reason = fmt::format("signal {} to rank {}", d.stop_signal, d.stop_rank),
                        .step = steps_done_};
  if (d.time_is_up)
    return TrainOutcome{.stopped = true,
                        .reason = fmt::format("train.max_minutes: {} minutes are over", p_.settings.train.max_minutes),
                        .step = steps_done_};
  return std::nullopt;
}

std::optional<TrainOutcome> Trainer::after_step() {
  std::optional<TrainOutcome> outcome;
  std::optional<Decision> decision;
  {
    const ProfileSpan span(p_.site.context.profiler(), {OpKind::kOther, "trainer", "control word"});
    const InsideCollective waiting(&p_.heartbeat);
    decision = control_.decision_for(steps_done_);
  }
  if (p_.profile) keep_error([&] { p_.profile->end_step(); });
  if (decision) outcome = act_on(*decision);
  if (steps_done_ == p_.settings.train.stop_at_step)
    outcome = TrainOutcome{.stopped = true, .reason = "train.stop_at_step", .step = steps_done_};
  // Nothing is left to stop, or the verdict on a bad step is on its way and comes first.
  if (outcome && (steps_done_ == p_.total_steps || went_non_finite())) outcome.reset();

  if (due(p_.settings.evaluate.knn.every_epochs)) evaluate();
  if (p_.skipped && due(1)) p_.skipped->tell(p_.site.host);
  const int64_t every_steps = p_.settings.checkpoint.every_steps;
  if (outcome || due(p_.settings.checkpoint.every_epochs) || (every_steps > 0 && steps_done_ % every_steps == 0) ||
      (decision && decision->save_due))
    save();
  keep_error([&] {
    p_.state.look_at_save();
    p_.progress(steps_done_, p_.state.last_checkpoint());
  });
  throughput_.leave_out_until(monotonic_seconds());
  return outcome;
}

std::string Trainer::checkpoint_name() const {
  return p_.state.last_checkpoint().empty() ? "none" : p_.state.last_checkpoint();
}

bool Trainer::due(int64_t every_epochs) const {
  if (steps_done_ == p_.total_steps) return true;
  const int64_t epoch_steps = p_.plan.steps_per_epoch();
  return every_epochs > 0 && steps_done_ % (every_epochs * epoch_steps) == 0;
}

void Trainer::look_at_embeddings(const EmbeddingStatistics& geometry,
                                 std::vector<std::pair<std::string, double>>& fields) {
  const int64_t columns = p_.settings.model.projector.output;
  log_info("step {}: embeddings: {}", steps_done_, describe(geometry, columns));
  if (steps_done_ > 0 && geometry.effective_rank < kCollapsedRank && columns > 2)
    log_warning(
        "step {}: the embeddings have collapsed: their effective rank is {:.1f} of {}, so all images lie on "
        "little more than one line; lower optimizer.base_lr, warm up longer or make the views stronger",
        steps_done_, geometry.effective_rank, columns);
  fields.insert(fields.end(), {{"alignment", geometry.alignment},
                               {"uniformity", geometry.uniformity},
                               {"effective_rank", geometry.effective_rank}});
}

void Trainer::evaluate() {
  if (!p_.knn || went_non_finite()) return;
  p_.heartbeat.beat(steps_done_, Phase::kEvaluating);
  log_until(steps_done_);
  const Beat beat = [&] { p_.heartbeat.beat(); };
  const KnnResult result = p_.knn->run(beat, [&](EvaluationFeatures features) {
    if (!p_.journal || error_) return;
    features.step = steps_done_;
    keep_error([&] { p_.journal->add_evaluation(features, beat); });
  });
  log_info("step {}: k-NN on {} test images: {}", steps_done_, result.queries, p_.knn->describe(result));
  const int64_t epoch = steps_done_ / p_.plan.steps_per_epoch();
  std::vector<std::pair<std::string, double>> fields = {{"knn_top1", result.top1()}, {"knn_top5", result.top5()}};
  if (const auto geometry = p_.knn->measure_embeddings(beat)) look_at_embeddings(*geometry, fields);
  append_metrics(format_metrics(steps_done_, epoch, fields), Journal::Point::kReportAndTensorBoard);
  if (p_.journal && !error_) keep_error([&] { p_.journal->write_report("running", steps_done_); });
  if (p_.settings.checkpoint.keep_best && steps_done_ > 0)
    keep_error([&] { p_.state.keep_if_best(steps_done_, epoch, result.top1()); });
}

void Trainer::save() {
  if (went_non_finite()) return;  // the verdict is on its way to all ranks; the last good checkpoint stays the last
  p_.heartbeat.beat(steps_done_, Phase::kSaving);
  if (!p_.state.is_finite()) {  // the same verdict on all ranks: they hold the same bits
    throw AgreedError(
        ExitCode::kDiverged,
        fmt::format("step {}: a weight or the optimizer's state is not finite any more; not saved, the last "
                    "checkpoint is {}; lower optimizer.base_lr or warm up longer",
                    steps_done_, checkpoint_name()));
  }
  p_.heartbeat.beat();
  log_until(steps_done_);
  if (error_) return;  // lines of metrics.jsonl are lost: a resume shall make them anew
  keep_error([&] {
    if (p_.metrics) p_.metrics->sync();
    if (p_.journal) p_.journal->sync();
    p_.state.begin_save(steps_done_, steps_done_ / p_.plan.steps_per_epoch());
  });
  last_save_s_ = monotonic_seconds();
  save_asked_ = false;
}

}  // namespace simclr
