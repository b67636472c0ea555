#include "src/base/progress_line.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "src/base/log.h"

namespace simclr {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const int64_t total = std::llround(seconds);
  const int64_t days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) return fmt::format("{} day{} {:02}:{:02}:{:02}", days, days == 1 ? "" : "s", hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

ProgressLine::ProgressLine(int64_t steps_done, int64_t steps_total, Clock clock)
    : first_step_(steps_done), steps_total_(steps_total), clock_(std::move(clock)), start_s_(clock_()) {}

std::string ProgressLine::format(int64_t step, std::string_view text) const {
  const double elapsed = clock_() - start_s_;
  const int64_t done = step - first_step_;
  const double left = done > 0 ? elapsed / static_cast<double>(done) * static_cast<double>(steps_total_ - step) : NAN;
  return fmt::format("step {}/{}  {}  elapsed {}  left {}", step, steps_total_, text, format_duration(elapsed),
                     format_duration(left));
}

void ProgressLine::rewrite(int64_t step, std::string_view text) {
  if (!console_is_terminal()) return;
  const double now = clock_();
  if (now - last_rewrite_s_ < 0.1) return;
  last_rewrite_s_ = now;
  rewrite_console_line(format(step, text));
}

void ProgressLine::write(int64_t step, std::string_view text) {
  log_message(LogLevel::kProgress, format(step, text));
}

void ProgressLine::finish() {
  rewrite_console_line("");
}

}  // namespace simclr
