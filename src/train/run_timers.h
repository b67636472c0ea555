// The wall-clock limits of a run, train.max_minutes and checkpoint.every_minutes. Clocks differ: rank 0's decides for
// all ranks, by its control word.
#pragma once

#include "src/comm/control_channel.h"
#include "src/config/settings.h"

namespace simclr {

class RunTimers {
 public:
  // started_s: of the run, by monotonic_seconds(); train.max_minutes counts from it, checkpoint.every_minutes from now.
  RunTimers(const Settings& settings, double started_s);

  // Rank 0, at any time: sets time_is_up. Once a step: save_due, too; a checkpoint is asked for once, until save_done().
  void poll_limit(ControlWord& word) const;
  void poll(ControlWord& word);
  void save_done();

 private:
  const double started_s_, most_s_, save_s_;  // 0: no limit
  double last_save_s_;
  bool save_asked_ = false;
};

}  // namespace simclr
