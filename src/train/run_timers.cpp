#include "src/train/run_timers.h"

#include "src/base/progress_line.h"

namespace simclr {

RunTimers::RunTimers(const Settings& settings, double started_s)
    : started_s_(started_s),
      most_s_(60 * settings.train.max_minutes),
      save_s_(60 * settings.checkpoint.every_minutes),
      last_save_s_(monotonic_seconds()) {}

void RunTimers::poll_limit(ControlWord& word) const {
  word.time_is_up = most_s_ > 0 && monotonic_seconds() - started_s_ >= most_s_ ? 1 : 0;
}

void RunTimers::poll(ControlWord& word) {
  poll_limit(word);
  if (save_s_ <= 0 || save_asked_ || monotonic_seconds() - last_save_s_ < save_s_) return;
  word.save_due = 1;
  save_asked_ = true;
}

void RunTimers::save_done() {
  last_save_s_ = monotonic_seconds();
  save_asked_ = false;
}

}  // namespace simclr
