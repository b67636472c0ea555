#include "src/train/rank_control.h"

#include <algorithm>

#include "kernels/common/numbers.h"
#include "src/comm/agreement.h"
#include "src/comm/collective_observer.h"
#include "src/comm/stop_signals.h"

namespace simclr {
namespace {

constexpr double kPollS = 0.5;  // between two polls in an evaluation

ProfileSpan control_span(const RunContext& run) {
  return {run.context.profiler(), {OpKind::kOther, "trainer", "control word"}};
}

}  // namespace

RankControl::RankControl(const TrainingSetup& setup, const RunContext& run, StateIo& state,
                         const NonFiniteFlag& non_finite, const RankError& error, double started_s, int64_t first_step)
    : settings_(setup.settings),
      run_(run),
      state_(state),
      non_finite_(non_finite),
      error_(error),
      first_step_(first_step),
      channel_(run.collectives, run.context),
      timers_(setup.settings, started_s),
      stop_time_(state.tensors()) {}

void RankControl::begin_step() {
  stop_time_.begin_step();
}

void RankControl::between_layers(int64_t steps_done) {
  stop_time_.end_part();
  // Known alike to all ranks. The first step may be a long one.
  if (!channel_.step_s() || *channel_.step_s() > ControlChannel::kLongStepS) poll(steps_done);
}

void RankControl::before_evaluated_call(int64_t steps_done) {
  // Before the first step the watchdog ends the run (startup_stop.h).
  if (run_.heartbeat.is_starting() || !channel_.step_s()) return;
  const double call_s = *channel_.step_s() / 3;  // forward alone
  if (as_double(++unpolled_calls_) * call_s < kPollS) return;
  unpolled_calls_ = 0;
  poll(steps_done);
}

void RankControl::end_step(int64_t steps_done) {
  const double step_s = stop_time_.end_step();
  post(steps_done, step_s);
  if (run_.host.rank() == 0 && steps_done > first_step_ + 1) stop_time_.log_once(step_s);
}

RankControl::Requests RankControl::requests_after(int64_t steps_done) {
  Requests requests;
  for (const Decision& decision : read_words(steps_done)) {
    if (const auto stop = act_on(decision); stop && !requests.stop) requests.stop = stop;
    requests.save = requests.save || decision.save_due;
  }
  return requests;
}

std::optional<std::string> RankControl::abandon(const Decision& decision) {
  run_.collectives.finish_sums();  // those that run next to the computation
  std::optional<std::string> stop;
  for (const Decision& older : channel_.drain())  // that a GPU is behind with; an error among them comes first
    if (const auto found = act_on(older); found && !stop) stop = found;
  return stop ? stop : act_on(decision);
}

void RankControl::finish() {
  for (const Decision& decision : channel_.drain()) act_on(decision);
  agree(run_.host, error_.get());  // an error that came after the last control word
}

ControlWord RankControl::own_word(int64_t steps_done) const {
  return {.step = steps_done,
          .stop_signal = stop_signal(),
          .error_code = error_.exists() ? static_cast<int32_t>(error_.get()->code()) : 0};
}

std::vector<Decision> RankControl::read_words(int64_t steps_done) {
  const ProfileSpan span = control_span(run_);
  const InsideCollective waiting(&run_.heartbeat);
  return channel_.decisions_after(steps_done);
}

void RankControl::poll(int64_t steps_done) {
  const ProfileSpan span = control_span(run_);
  ControlWord word = own_word(steps_done);
  // Not in the first step of a start: with a limit that is shorter than the start a run would never get further.
  if (run_.host.rank() == 0 && steps_done > first_step_) timers_.poll_limit(word);
  if (const auto decision = channel_.poll(word)) throw Abandoned{*decision};
}

void RankControl::post(int64_t steps_done, double step_s) {
  const ProfileSpan span = control_span(run_);
  ControlWord word = own_word(steps_done);
  word.step_ms = static_cast<uint32_t>(std::min(step_s, 1e6) * 1e3);
  ControlChannel::OnDevice on_device{.non_finite = non_finite_.on_device()};
  const int64_t every = settings_.train.check_every;
  if (every > 0 && steps_done % every == 0) {
    word.hash_due = 1;
    on_device.weights_hash = state_.queue_state_hash();
  }
  if (run_.host.rank() == 0) timers_.poll(word);
  channel_.post(word, on_device);
}

std::optional<std::string> RankControl::act_on(const Decision& d) {
  if (d.non_finite()) throw divergence_error(d.step, settings_.loss.type, state_.last_checkpoint());
  if (d.hashes_differ()) throw drift_error(d, state_.describe_drift(), state_.last_checkpoint());
  if (d.failed()) {
    agree(run_.host, error_.get());  // throws: the words were the same on all ranks
    SIMCLR_CHECK(false, "rank {} announced an error after step {} and has none", d.error_rank, d.step);
  }
  if (d.stop()) return fmt::format("signal {} to rank {}", d.stop_signal, d.stop_rank);
  if (d.time_is_up) return fmt::format("time limit reached (train.max_minutes: {})", settings_.train.max_minutes);
  return std::nullopt;
}

}  // namespace simclr
