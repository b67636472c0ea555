// How far the run is: one line that rewrites itself on a terminal, plain lines elsewhere and in train.log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace simclr {

// Seconds since some fixed moment; never goes back.
double monotonic_seconds();

// "0:07", "12:34", "1:02:03", "2 days 03:04:05"; "?" for what is not a duration.
std::string format_duration(double seconds);

class ProgressLine {
 public:
  using Clock = std::function<double()>;

  // Steps done before this run (0, or where it resumed) and at its end.
  ProgressLine(int64_t steps_done, int64_t steps_total, Clock clock = monotonic_seconds);

  // Terminal: at most ten times a second. Elsewhere nothing. `step` is the number of steps done.
  void rewrite(int64_t step, std::string_view text);
  // A line of the log, for every `log.every_steps`.
  void write(int64_t step, std::string_view text);
  // Removes the rewriting line.
  void finish();

  // "step 120/3900  TEXT  elapsed 1:02  left 33:10"
  std::string format(int64_t step, std::string_view text) const;

 private:
  const int64_t first_step_, steps_total_;
  const Clock clock_;
  const double start_s_;
  double last_rewrite_s_ = -1e9;
};

}  // namespace simclr
