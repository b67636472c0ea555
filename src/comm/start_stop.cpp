#include "src/comm/start_stop.h"

#include <fmt/format.h>

#include <algorithm>

namespace simclr {
namespace {

bool is_asked(std::span<const Pulse> pulses) {
  return std::any_of(pulses.begin(), pulses.end(), [](const Pulse& p) { return p.stop_signal != 0; });
}

}  // namespace

void StartStop::fill(Pulse& mine, bool starting, int signal, std::span<const Pulse> pulses) const {
  mine.stop_signal = starting ? signal : 0;
  mine.heard_stop = starting && (signal != 0 || is_asked(pulses));
}

StartStop::Outcome StartStop::look(std::span<const Pulse> pulses, bool starting, double interval_s, double now_s) {
  if (!starting || !is_asked(pulses)) {
    since_asked_.reset();
    return Outcome::kGoOn;
  }
  if (std::all_of(pulses.begin(), pulses.end(), [](const Pulse& p) { return p.heard_stop || p.left; }))
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
