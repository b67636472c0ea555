#include "src/comm/startup_stop.h"

#include <fmt/format.h>

#include <algorithm>

namespace simclr {
namespace {

bool is_asked(std::span<const Pulse> pulses) {
  return std::any_of(pulses.begin(), pulses.end(), [](const Pulse& p) { return p.stop_signal != 0; });
}

bool has_begun(std::span<const Pulse> pulses) {
  return std::any_of(pulses.begin(), pulses.end(), [](const Pulse& p) { return p.begun; });
}

}  // namespace

// Ranks that have heard wait at their gates, and one that has begun never hears: so "all have heard", once true, stays
// true, and no rank trains while another one ends.
void StartupStop::fill(Pulse& mine, StartGate& gate, int signal, std::span<const Pulse> pulses) const {
  const bool too_late = has_begun(pulses), asked = signal != 0 || is_asked(pulses);
  if (too_late) gate.open();
  mine.knows_of_stop = asked && !too_late && gate.close();
  mine.begun = gate.is_passed();
  mine.stop_signal = mine.begun ? 0 : signal;
}

StartupStop::Outcome StartupStop::look(std::span<const Pulse> pulses, bool starting, double interval_s, double now_s) {
  if (!starting || !is_asked(pulses) || has_begun(pulses)) {
    since_asked_.reset();
    return Outcome::kContinue;
  }
  if (std::all_of(pulses.begin(), pulses.end(), [](const Pulse& p) { return p.knows_of_stop || p.left; }))
    return Outcome::kStop;
  if (!since_asked_)
    since_asked_.emplace(static_cast<int>(pulses.size()), patience_s_ + 2 * interval_s, interval_s, now_s);
  silent_ = since_asked_->look(pulses, now_s);
  return silent_ && silent_->kind == Verdict::Kind::kDead ? Outcome::kMissing : Outcome::kWait;
}

std::string describe_stop(std::span<const Pulse> pulses) {
  for (size_t r = 0; r < pulses.size(); ++r)
    if (pulses[r].stop_signal != 0) return fmt::format("signal {} to rank {}", pulses[r].stop_signal, r);
  return "";
}

}  // namespace simclr
