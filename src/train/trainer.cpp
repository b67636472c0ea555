#include "src/train/trainer.h"

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/collective_observer.h"
#include "src/comm/stop_signals.h"

namespace simclr {

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
      steps_done_(services_.first_step) {
  error_.set_step(steps_done_);
  const int64_t rows = setup.geometry.local_rows(), columns = setup.settings.model.projector.output;
  const int64_t stride = padded_cols(columns);
  grad_z_memory_ = run.context.allocate_storage(rows * stride);
  grad_z_ = {grad_z_memory_.as<float>().data(), rows, columns, stride, run.context.device().storage()};
}

TrainOutcome Trainer::run() {
  if (steps_done_ == 0) evaluate();
  services_.log.leave_out_pause();
  std::optional<TrainOutcome> outcome;
  while (!outcome && steps_done_ < total_steps_) {
    step();
    outcome = after_step();
  }
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

void Trainer::step() {
  run_.heartbeat.beat(steps_done_, Phase::kTraining);
  if (services_.profile) services_.profile->begin_step(steps_done_ + 1);
  Model& model = setup_.model;
  const std::span<float> gradients = model.store().per_rank_gradients();
  const Batch& batch = next_batch();                  // [shards, 2n, 3, size, size]
  const ConstMatrix z = model.forward(batch.images);  // [rows of this rank, C]
  const double* loss = setup_.loss->forward(z);       // over the global batch
  setup_.loss->backward(grad_z_);
  reducer_.begin(gradients);  // this rank's part of every gradient becomes the sum over ranks, in shard order
  model.backward(grad_z_, [&](const Parameter& first) { reducer_.ready_from(first.grad - gradients.data()); });
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
  post_control_word();
}

const Batch& Trainer::next_batch() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kData, "views", "wait"});
  return services_.loader.next();
}

void Trainer::post_control_word() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  ControlWord word{.step = steps_done_,
                   .stop_signal = stop_signal(),
                   .error_code = error_.exists() ? static_cast<int32_t>(error_.get()->code()) : 0};
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
  const std::optional<Decision> decision = read_decision();
  if (services_.profile) error_.record([&] { services_.profile->end_step(); });
  if (decision) outcome = act_on(*decision);
  if (steps_done_ == setup_.settings.train.stop_at_step) outcome = stopped("train.stop_at_step");
  // Nothing is left to stop, or the verdict on a bad step is on its way and comes first.
  if (outcome && (steps_done_ == total_steps_ || non_finite_.read())) outcome.reset();

  if (due(setup_.settings.evaluate.knn.every_epochs)) evaluate();
  if (services_.skipped && due(1)) services_.skipped->report(run_.host);
  if (outcome || save_is_due(decision)) save();
  error_.record([&] {
    services_.state.poll_save();
    report_progress();
  });
  services_.log.leave_out_pause();
  return outcome;
}

std::optional<Decision> Trainer::read_decision() {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOther, "trainer", "control word"});
  const InsideCollective waiting(&run_.heartbeat);
  return control_.decision_for(steps_done_);
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

void Trainer::evaluate() {
  if (!services_.knn || non_finite_.read()) return;
  run_.heartbeat.beat(steps_done_, Phase::kEvaluating);
  services_.log.write_until(steps_done_);
  const Beat beat = [&] { run_.heartbeat.beat(); };
  const KnnResult result = services_.knn->run(beat, [&](EvaluationFeatures features) {
    features.step = steps_done_;
    services_.log.add_images(features, beat);
  });
  services_.log.write_accuracy(steps_done_, result, services_.knn->describe(result));
  services_.log.write_evaluation(steps_done_, epochs_done(), result, services_.knn->measure_embeddings(beat));
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
    services_.state.begin_save(steps_done_, epochs_done());
  });
  timers_.save_done();
}

void Trainer::report_progress() {
  services_.progress(steps_done_, services_.state.last_checkpoint());
}

bool Trainer::due(int64_t every_epochs) const {
  if (steps_done_ == total_steps_) return true;
  return every_epochs > 0 && steps_done_ % (every_epochs * setup_.plan->steps_per_epoch()) == 0;
}

bool Trainer::save_is_due(const std::optional<Decision>& decision) const {
  const CheckpointSettings& checkpoint = setup_.settings.checkpoint;
  return due(checkpoint.every_epochs) || (checkpoint.every_steps > 0 && steps_done_ % checkpoint.every_steps == 0) ||
         (decision && decision->save_due);
}

TrainOutcome Trainer::stopped(const std::string& reason) const {
  return {.stopped = true, .reason = reason, .step = steps_done_};
}

std::string Trainer::checkpoint_name() const {
  return services_.state.last_checkpoint().empty() ? "none" : services_.state.last_checkpoint();
}

}  // namespace simclr
