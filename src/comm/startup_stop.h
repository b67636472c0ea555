// A stop that is asked for before the first step. There is no control word yet that carries it to all ranks, and a rank
// may wait in a collective for one that is hours behind; but nothing can be lost, so the job may end where it stands.
// Before it does, all ranks must know of it: a launcher that removes the survivors of a dead rank sends them
// SIGTERM as well, and that is a failure. Decides from pulses; no threads, no clock of its own.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "src/comm/heartbeat.h"
#include "src/comm/stall_detector.h"

namespace simclr {

class StartupStop {
 public:
  // patience_s: once a stop is asked for, a rank without a sign of life for this long no longer delays the others.
  explicit StartupStop(double patience_s) : patience_s_(patience_s) {}

  // What this rank shows. gate: of this process; closed as long as it shows that it knows of a stop. signal: of
  // this process, 0: none. pulses: [W], as they were seen last. Where a rank is past its start, all continue to theirs.
  void fill(Pulse& mine, StartGate& gate, int signal, std::span<const Pulse> pulses) const;

  enum class Outcome {
    kContinue,  // no stop was asked for, or the first step has begun: the control word handles it
    kWait,      // not all ranks know of it
    kStop,      // all do: end, nothing is lost
    kMissing,   // rank() is gone or stopped: end, a failure
  };
  // interval_s: how often look() is called; now_s: this process's monotonic clock.
  Outcome look(std::span<const Pulse> pulses, bool starting, double interval_s, double now_s);

  // After kMissing: the rank that has given no sign of life, and for how long.
  int rank() const { return silent_->rank; }
  double silent_s() const { return silent_->silent_s; }

 private:
  const double patience_s_;
  std::optional<StallDetector> since_asked_;
  std::optional<Verdict> silent_;
};

// "signal 15 to rank 2", of the lowest rank that has one; empty: none.
std::string describe_stop(std::span<const Pulse> pulses);

}  // namespace simclr
