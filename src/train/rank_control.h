// How the ranks of a run stop, save and fail together: each sends its control word after every step (control_channel.h)
// and, where steps are long, between layers; all read the same words and act alike. Collective, but for the constructor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/comm/control_channel.h"
#include "src/train/divergence.h"
#include "src/train/rank_error.h"
#include "src/train/run_timers.h"
#include "src/train/state_io.h"
#include "src/train/stop_time.h"
#include "src/train/training_setup.h"

namespace simclr {

class RankControl {
 public:
  // Thrown between two layers, or two calls of an evaluation, on all ranks at once: the step ends there.
  struct Abandoned {
    Decision decision;
  };
  // What the words that are due after a step ask for.
  struct Requests {
    std::optional<std::string> stop;  // who asked
    bool save = false;
  };

  // error: of this rank, sent with its next word. started_s: of the run, by monotonic_seconds(); first_step: steps done
  // before. Everything passed in outlives this.
  RankControl(const TrainingSetup& setup, const RunContext& run, StateIo& state, const NonFiniteFlag& non_finite,
              const RankError& error, double started_s, int64_t first_step);

  void begin_step();
  // Polls the ranks where steps are long; throws Abandoned.
  void between_layers(int64_t steps_done);
  // The same between the calls of an evaluation, about twice a second.
  void before_evaluated_call(int64_t steps_done);
  // Sends this rank's word.
  void end_step(int64_t steps_done);

  // Throws AgreedError where a rank failed, diverged or holds other weights than the others.
  Requests requests_after(int64_t steps_done);
  // After Abandoned, with the state of the last whole step: nothing of the one under way has touched weights or
  // statistics. Returns who asked for a stop; throws as requests_after().
  std::optional<std::string> abandon(const Decision& decision);
  // After the last step: a stop comes too late to matter, an error throws.
  void finish();

  void save_done() { timers_.save_done(); }  // restarts the time to the next checkpoint

 private:
  ControlWord own_word(int64_t steps_done) const;
  std::vector<Decision> read_words(int64_t steps_done);
  void poll(int64_t steps_done);
  void post(int64_t steps_done, double step_s);
  std::optional<std::string> act_on(const Decision& decision);

  const Settings& settings_;
  const RunContext run_;
  StateIo& state_;
  const NonFiniteFlag& non_finite_;
  const RankError& error_;
  const int64_t first_step_;
  ControlChannel channel_;
  RunTimers timers_;
  StopTime stop_time_;
  int64_t unpolled_calls_ = 0;  // of an evaluation
};

}  // namespace simclr
