#include "src/train/trainer.h"

#include "src/base/log.h"

namespace simclr {

Trainer::Trainer(TrainingSetup& setup, const RunContext& run, TrainerServices services)
    : setup_(setup),
      run_(run),
      services_(std::move(services)),
      total_steps_(setup.total_steps()),
      reducer_(run.collectives),
      gradient_norm_(run.context, setup.model.store()),
      error_(services_.log.error()),
      non_finite_(run),
      control_(setup, run, services_.state, non_finite_, error_, services_.started_s, services_.first_step),
      steps_done_(services_.first_step),
      saved_step_(services_.first_step) {
  error_.set_step(steps_done_);
  const int64_t rows = setup.geometry.local_rows(), columns = setup.settings.model.projector.output;
  const int64_t stride = padded_cols(columns);
  grad_z_memory_ = run.context.allocate_storage(rows * stride);
  grad_z_ = {{grad_z_memory_.data(), storage_of(run.context.exec())}, rows, columns, stride};
}

TrainOutcome Trainer::run() {
  StopReason stop;
  if (steps_done_ == 0) {
    stop = evaluate();
  } else if (services_.state.evaluation_due()) {
    stop = evaluate();
    save();  // the same state, without the note that its evaluation is due
  }
  services_.log.leave_out_pause();
  while (!stop && steps_done_ < total_steps_) stop = step();
  services_.log.write_until(steps_done_);
  if (services_.profile) error_.record([&] { services_.profile->finish(); });
  error_.record([&] {
    services_.state.finish_save();
    report_progress();
  });
  control_.finish();
  return {.stopped = stop.has_value(), .reason = stop.value_or(""), .step = steps_done_};
}

Trainer::StopReason Trainer::step() {
  run_.heartbeat.beat(steps_done_, Phase::kTraining);
  control_.begin_step();
  try {
    compute_step();
  } catch (const RankControl::Abandoned& abandoned) {
    const StopReason stop = control_.abandon(abandoned.decision);
    if (steps_done_ > saved_step_) save();
    return stop;
  }
  control_.end_step(steps_done_);
  return after_step();
}

void Trainer::compute_step() {
  if (services_.profile) services_.profile->begin_step(steps_done_ + 1);
  Model& model = setup_.model;
  const auto between_layers = [&] { control_.between_layers(steps_done_); };  // abandons a long step for a stop
  const std::span<float> gradients = model.store().per_rank_gradients();
  const Batch& batch = next_batch();  // [shards, 2n, 3, size, size]
  between_layers();
  const ConstMatrix z = model.forward(batch.images, between_layers);  // [rows of this rank, C]
  const double* loss = setup_.loss->forward(z);                       // over the global batch
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

Trainer::StopReason Trainer::after_step() {
  const RankControl::Requests requests = control_.requests_after(steps_done_);
  if (services_.profile) error_.record([&] { services_.profile->end_step(); });
  StopReason stop = requests.stop;
  if (steps_done_ == setup_.settings.train.stop_at_step) stop = "train.stop_at_step";
  // Nothing is left to stop, or the verdict on a bad step is on its way and comes first.
  if (stop && (steps_done_ == total_steps_ || non_finite_.read())) stop.reset();

  if (due(setup_.settings.evaluate.knn.every_epochs)) {
    if (const StopReason found = evaluate(); found && !stop) stop = found;
  }
  if (services_.skipped && due(1)) services_.skipped->report(run_.host);
  if (stop || save_is_due(requests.save)) save();
  error_.record([&] {
    services_.state.poll_save();
    report_progress();
  });
  services_.log.leave_out_pause();
  return stop;
}

Trainer::StopReason Trainer::evaluate() {
  if (!services_.knn || non_finite_.read()) return std::nullopt;
  evaluation_due_ = true;
  try {
    compute_evaluation();
  } catch (const RankControl::Abandoned& abandoned) {
    return control_.abandon(abandoned.decision);
  }
  evaluation_due_ = false;
  return std::nullopt;
}

void Trainer::compute_evaluation() {
  run_.heartbeat.beat(steps_done_, Phase::kEvaluating);
  services_.log.write_until(steps_done_);
  const Beat beat = [&] { run_.heartbeat.beat(); };
  const auto before_call = [&] { control_.before_evaluated_call(steps_done_); };
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
  if (!services_.state.is_finite()) throw non_finite_state_error(steps_done_, services_.state.last_checkpoint());
  run_.heartbeat.beat();
  services_.log.write_until(steps_done_);
  if (error_.exists()) return;  // lines of metrics.jsonl are lost: a resumed run is to write them again
  error_.record([&] {
    services_.log.sync();
    services_.state.begin_save(steps_done_, epochs_done(), evaluation_due_);
  });
  saved_step_ = steps_done_;
  control_.save_done();
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

}  // namespace simclr
