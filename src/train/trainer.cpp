#include "src/train/trainer.h"

#include <algorithm>

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/collective_observer.h"
#include "src/comm/stop_signals.h"

namespace simclr {
namespace {

constexpr double kPollS = 0.5;  // between two polls in an evaluation

}  // namespace

Trainer::Trainer(TrainingSetup& setup, const RunContext& run, TrainerServices services)
    : setup_(setup),
      run_(run),
      services_(std::move(services)),
      total_steps_(setup.total_steps()),
      control_(run.collectives, run.context),
      reducer_(run.collectives),
      gradient_norm_(run.context, setup.model.store()),
      timers_(setup.settings, services_.started_s),
      error_(services_.log.error()),
      non_finite_(run),
      stop_time_(services_.state.tensors()),
      steps_done_(services_.first_step),
      saved_step_(services_.first_step) {
  error_.set_step(steps_done_);
  const int64_t rows = setup.geometry.local_rows(), columns = setup.settings.model.projector.output;
  const int64_t stride = padded_cols(columns);
  grad_z_memory_ = run.context.allocate_storage(rows * stride);
  grad_z_ = {{grad_z_memory_.data(), storage_of(run.context.exec())}, rows, columns, stride};
}

TrainOutcome Trainer::run() {
  std::optional<TrainOutcome> outcome;
  if (steps_done_ == 0) {
    outcome = evaluate();
  } else if (services_.state.evaluation_due()) {
    outcome = evaluate();
    save();  // the same state, without the note that its evaluation is due
  }
  services_.log.leave_out_pause();
  while (!outcome && steps_done_ < total_steps_) outcome = step();
  services_.log.write_until(steps_done_);
  if (services_.profile) error_.record([&] { services_.profile->finish(); });
  error_.record([&] {
    services_.state.finish_save();
    report_progress();
  });
  for (const Decision& decision : control_.drain()) act_on(decision);  // a stop request comes too late to matter
  agree(run_.host, error_.get());                                      // one that came after the last control word
  return outcome.value_or(TrainOutcome{.stopped = false, .reason = "", .step = steps_done_});
}

std::optional<TrainOutcome> Trainer::step() {
  run_.heartbeat.beat(steps_done_, Phase::kTraining);
  stop_time_.begin_step();
  try {
    compute_step();
  } catch (const Abandoned& abandoned) {
    const auto outcome = abandon(abandoned.decision);
    if (steps_done_ > saved_step_) save();
    return outcome;
  }
  const double step_s = stop_time_.end_step();
  post_control_word(step_s);
  if (run_.host.rank() == 0 && steps_done_ > services_.first_step + 1) stop_time_.log_once(step_s);
  return after_step();
}

void Trainer::compute_step() {
  if (services_.profile) services_.profile->begin_step(steps_done_ + 1);
  Model& model = setup_.model;
  const std::span<float> gradients = model.store().per_rank_gradients();
  const Batch& batch = next_batch();  // [shards, 2n, 3, size, size]
  between_layers();
  const ConstMatrix z = model.forward(batch.images, [&] { between_layers(); });  // [rows of this rank, C]
  const double* loss = setup_.loss->forward(z);                                  // over the global batch
  setup_.loss->backward(grad_z_);
  between_layers();
  reducer_.begin(gradients);  // this rank's part of every gradient becomes the sum over ranks, in shard order
  model.backward(grad_z_, [&](const Parameter& first) {
    reducer_.ready_from(first.grad - gradients.data());
    between_layers();
  });
  reducer_.finish();

  // Loss and gradients are the same on all ranks now, so all reach the same verdict without asking.
  non_finite_.check(loss, model.store().gradients());
  const double* gradient_square = gradient_norm_.queue_square();
  const double learning_rate = setup_.schedule.learning_rate(steps_done_);
  setup_.optimizer->update(steps_done_, learning_rate, non_finite_.on_device());
  model.update_running_statistics(non_finite_.on_device());

  error_.set_step(++steps_done_);
  services_.log.queue({.step = steps_done_,
                       .epoch = batch.epoch,
                       .learning_rate = learning_rate,
                       .data_wait_s = services_.loader.last_wait_s(),
                       .loss = loss,
                       .gradient_square = gradient_square});
  services_.log.write_ready(steps_done_);
}

const Batch& Trainer::next_batch() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kData, "views", "wait"});
  return services_.loader.next();
}

ControlWord Trainer::own_word() const {
  return {.step = steps_done_,
          .stop_signal = stop_signal(),
          .error_code = error_.exists() ? static_cast<int32_t>(error_.get()->code()) : 0};
}

void Trainer::between_layers() {
  stop_time_.end_part();
  // Known alike to all ranks. The first step may be a long one.
  if (!control_.step_s() || *control_.step_s() > ControlChannel::kLongStepS) poll();
}

void Trainer::before_evaluated_call() {
  // Before the first step the watchdog ends the run (startup_stop.h).
  if (run_.heartbeat.is_starting() || !control_.step_s()) return;
  const double call_s = *control_.step_s() / 3;  // forward alone
  if (static_cast<double>(++unpolled_calls_) * call_s < kPollS) return;
  unpolled_calls_ = 0;
  poll();
}

void Trainer::poll() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  ControlWord word = own_word();
  // Not in the first step of a start: with a limit that is shorter than the start a run would never get further.
  if (run_.host.rank() == 0 && steps_done_ > services_.first_step) timers_.poll_limit(word);
  if (const auto decision = control_.poll(word)) throw Abandoned{*decision};
}

std::optional<TrainOutcome> Trainer::abandon(const Decision& decision) {
  run_.collectives.finish_sums();  // those that run next to the computation
  std::optional<TrainOutcome> outcome;
  for (const Decision& older : control_.drain())  // that a GPU is behind with; an error among them comes first
    if (const auto found = act_on(older); found && !outcome) outcome = found;
  return outcome ? outcome : act_on(decision);
}

void Trainer::post_control_word(double step_s) {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  ControlWord word = own_word();
  word.step_ms = static_cast<uint32_t>(std::min(step_s, 1e6) * 1e3);
  ControlChannel::OnDevice on_device{.non_finite = non_finite_.on_device()};
  const int64_t every = setup_.settings.train.check_every;
  if (every > 0 && steps_done_ % every == 0) {
    word.hash_due = 1;
    on_device.weights_hash = services_.state.queue_state_hash();
  }
  if (run_.host.rank() == 0) timers_.poll(word);
  control_.post(word, on_device);
}

std::optional<TrainOutcome> Trainer::after_step() {
  std::optional<TrainOutcome> outcome;
  const std::vector<Decision> decisions = read_decisions();
  if (services_.profile) error_.record([&] { services_.profile->end_step(); });
  bool save_asked_for = false;
  for (const Decision& decision : decisions) {
    if (const auto found = act_on(decision); found && !outcome) outcome = found;
    save_asked_for = save_asked_for || decision.save_due;
  }
  if (steps_done_ == setup_.settings.train.stop_at_step) outcome = stopped("train.stop_at_step");
  // Nothing is left to stop, or the verdict on a bad step is on its way and comes first.
  if (outcome && (steps_done_ == total_steps_ || non_finite_.read())) outcome.reset();

  if (due(setup_.settings.evaluate.knn.every_epochs)) {
    if (const auto found = evaluate(); found && !outcome) outcome = found;
  }
  if (services_.skipped && due(1)) services_.skipped->report(run_.host);
  if (outcome || save_is_due(save_asked_for)) save();
  error_.record([&] {
    services_.state.poll_save();
    report_progress();
  });
  services_.log.leave_out_pause();
  return outcome;
}

std::vector<Decision> Trainer::read_decisions() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  const InsideCollective waiting(&run_.heartbeat);
  return control_.decisions_after(steps_done_);
}

std::optional<TrainOutcome> Trainer::act_on(const Decision& d) {
  if (d.non_finite()) throw divergence_error(d.step, setup_.settings.loss.type, checkpoint_name());
  if (d.hashes_differ()) throw drift_error(d, services_.state.describe_drift(), checkpoint_name());
  if (d.failed()) {
    agree(run_.host, error_.get());  // throws: the words were the same on all ranks
    SIMCLR_CHECK(false, "rank {} announced an error after step {} and has none", d.error_rank, d.step);
  }
  if (d.stop()) return stopped(fmt::format("signal {} to rank {}", d.stop_signal, d.stop_rank));
  if (d.time_is_up)
    return stopped(fmt::format("time limit reached (train.max_minutes: {})", setup_.settings.train.max_minutes));
  return std::nullopt;
}

std::optional<TrainOutcome> Trainer::evaluate() {
  if (!services_.knn || non_finite_.read()) return std::nullopt;
  evaluation_due_ = true;
  try {
    compute_evaluation();
  } catch (const Abandoned& abandoned) {
    return abandon(abandoned.decision);
  }
  evaluation_due_ = false;
  return std::nullopt;
}

void Trainer::compute_evaluation() {
  run_.heartbeat.beat(steps_done_, Phase::kEvaluating);
  services_.log.write_until(steps_done_);
  const Beat beat = [&] { run_.heartbeat.beat(); };
  const auto before_call = [&] { before_evaluated_call(); };
  const auto show = [&](EvaluationFeatures features) {
    features.step = steps_done_;
    services_.log.add_images(features, beat);
  };
  const KnnResult result = services_.knn->run(beat, show, before_call);
  services_.log.write_accuracy(steps_done_, result, services_.knn->describe(result));
  services_.log.write_evaluation(steps_done_, epochs_done(), result,
                                 services_.knn->measure_embeddings(beat, before_call));
  if (setup_.settings.checkpoint.keep_best && steps_done_ > 0)
    error_.record([&] { services_.state.keep_if_best(steps_done_, epochs_done(), result.top1()); });
}

void Trainer::save() {
  if (non_finite_.read()) return;  // the verdict is on its way to all ranks; the last good checkpoint stays the last
  run_.heartbeat.beat(steps_done_, Phase::kSaving);
  // The same verdict on all ranks: they hold the same bits.
  if (!services_.state.is_finite()) throw non_finite_state_error(steps_done_, checkpoint_name());
  run_.heartbeat.beat();
  services_.log.write_until(steps_done_);
  if (error_.exists()) return;  // lines of metrics.jsonl are lost: a resumed run is to write them again
  error_.record([&] {
    services_.log.sync();
    services_.state.begin_save(steps_done_, epochs_done(), evaluation_due_);
  });
  saved_step_ = steps_done_;
  timers_.save_done();
}

void Trainer::report_progress() {
  services_.progress(steps_done_, services_.state.last_checkpoint());
}

bool Trainer::due(int64_t every_epochs) const {
  if (steps_done_ == total_steps_) return true;
  return every_epochs > 0 && steps_done_ % (every_epochs * setup_.plan->steps_per_epoch()) == 0;
}

bool Trainer::save_is_due(bool asked_for) const {
  const CheckpointSettings& checkpoint = setup_.settings.checkpoint;
  return due(checkpoint.every_epochs) || (checkpoint.every_steps > 0 && steps_done_ % checkpoint.every_steps == 0) ||
         asked_for;
}

TrainOutcome Trainer::stopped(const std::string& reason) const {
  return {.stopped = true, .reason = reason, .step = steps_done_};
}

std::string Trainer::checkpoint_name() const {
  return services_.state.last_checkpoint().empty() ? "none" : services_.state.last_checkpoint();
}

}  // namespace simclr
