// Decides from the pulses of all ranks who is dead, who is stalled, or that all wait for each other. No threads, no
// clock of its own, so that tests can play any story.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/comm/heartbeat.h"

namespace simclr {

struct Verdict {
  enum class Kind { kDead, kStalled, kAllWaiting };
  Kind kind = Kind::kDead;
  int rank = 0;             // the (lowest) culprit; for kAllWaiting the rank with the fewest steps
  int more = 0;             // further ranks of this kind
  double silent_s = 0;      // since its last sign
  Pulse last;               // the last thing seen of it
  int64_t newest_step = 0;  // the most steps that any rank has done
};

class StallDetector {
 public:
  // interval_s: how often look() is called. A gap much longer than that means that this process itself stood still
  // (stopped, swapped out), which says nothing about the others: it counts as two intervals.
  StallDetector(int size, double timeout_s, double interval_s, double now_s);

  // One pulse per rank [W] at now_s (this process's monotonic clock).
  std::optional<Verdict> look(std::span<const Pulse> pulses, double now_s);

 private:
  struct Seen {
    Pulse pulse;
    double alive_s = 0, progress_s = 0;  // watched time of the last change
  };

  const double timeout_s_, interval_s_;
  double last_look_s_;
  double watched_s_ = 0;  // time for which this process itself ran
  std::vector<Seen> seen_;
};

// The line for people: who, where, since when, at which step, and what to do. setting: the key of timeout_s; empty for
// a command without keys, steps and checkpoints.
std::string describe(const Verdict& verdict, std::span<const std::string> hosts, double timeout_s,
                     const std::string& setting);

}  // namespace simclr
