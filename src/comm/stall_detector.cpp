#include "src/comm/stall_detector.h"

#include <fmt/format.h>

#include <algorithm>

namespace simclr {

StallDetector::StallDetector(int size, double timeout_s, double interval_s, double now_s)
    : timeout_s_(timeout_s), interval_s_(interval_s), last_look_s_(now_s), seen_(static_cast<size_t>(size)) {}

std::optional<Verdict> StallDetector::look(std::span<const Pulse> pulses, double now_s) {
  watched_s_ += std::clamp(now_s - last_look_s_, 0.0, 2 * interval_s_);
  last_look_s_ = now_s;

  std::optional<Verdict> dead, stalled, waiting;
  const auto accuse = [](std::optional<Verdict>& verdict, Verdict::Kind kind, int rank, double silent_s,
                         const Pulse& last) {
    if (verdict)
      ++verdict->more;
    else
      verdict = Verdict{.kind = kind, .rank = rank, .more = 0, .silent_s = silent_s, .last = last};
  };
  bool all_wait = true;
  int64_t newest_step = 0;
  for (int r = 0; r < static_cast<int>(seen_.size()); ++r) {
    Seen& seen = seen_[r];
    const Pulse& now = pulses[r];
    if (now.alive != seen.pulse.alive) seen.alive_s = watched_s_;
    if (now.progress != seen.pulse.progress || now.waiting != seen.pulse.waiting) seen.progress_s = watched_s_;
    seen.pulse = now;
    newest_step = std::max(newest_step, now.step);
    if (now.left) continue;
    const double dead_for = watched_s_ - seen.alive_s, still_for = watched_s_ - seen.progress_s;
    if (dead_for > timeout_s_) accuse(dead, Verdict::Kind::kDead, r, dead_for, now);
    // A stopped process made its last progress before its last sign of life: the verdict waits for the latter.
    const bool may_be_dead = dead_for > timeout_s_ / 2;
    if (still_for > timeout_s_ && !now.waiting && !may_be_dead)
      accuse(stalled, Verdict::Kind::kStalled, r, still_for, now);
    all_wait = all_wait && now.waiting && still_for > timeout_s_;
    if (now.waiting && (!waiting || now.step < waiting->last.step))
      waiting = Verdict{.kind = Verdict::Kind::kAllWaiting, .rank = r, .more = 0, .silent_s = still_for, .last = now};
  }
  std::optional<Verdict> verdict = dead ? dead : stalled ? stalled : all_wait ? waiting : std::nullopt;
  if (verdict) verdict->newest_step = newest_step;
  return verdict;
}

std::string describe(const Verdict& verdict, std::span<const std::string> hosts, double timeout_s,
                     const std::string& setting) {
  const bool trains = !setting.empty();
  const std::string where = trains ? fmt::format(", last seen at step {} ({}) while the run was at step {}",
                                                 verdict.last.step, name_of(verdict.last.phase), verdict.newest_step)
                                   : "";
  std::string who = fmt::format("rank {} ({})", verdict.rank, hosts[verdict.rank]);
  if (verdict.more > 0) who += fmt::format(" and {} more", verdict.more);
  const std::string limit =
      fmt::format("{:.1f} s ({}: {:g})", verdict.silent_s, trains ? setting : "the limit, in seconds", timeout_s);
  const std::string raise = trains ? fmt::format("raise {} if its work takes that long, ", setting) : "";
  const char* again = trains ? "then start again with --resume auto" : "then start again";
  switch (verdict.kind) {
    case Verdict::Kind::kDead:
      return fmt::format(
          "{} has given no sign of life for {}{}: its process is stopped or gone, or its host is; look there, {}", who,
          limit, where, again);
    case Verdict::Kind::kStalled:
      return fmt::format("{} has made no progress for {}{}; look for a slow disk or an overloaded host there, {}{}",
                         who, limit, where, raise, again);
    case Verdict::Kind::kAllWaiting:
      return fmt::format(
          "all ranks have waited for each other for {}; {} is the one with the fewest steps{}; look at the network, {}",
          limit, who, where, again);
  }
  return who;
}

}  // namespace simclr
