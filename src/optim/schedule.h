// The learning rate as a function of the step alone, so that a resumed run needs no state.
//   warm-up, step < warmup_steps:  lr(step) = peak * (step + 1) / warmup_steps
//   then cosine:    lr(step) = peak/2 * (1 + cos(pi * (step - warmup_steps) / (total_steps - warmup_steps)))
//   or constant:    lr(step) = peak
//   or step:        lr(step) = peak * gamma^(number of milestones <= step), as torch.optim's MultiStepLR
// A run shorter than its warm-up ends within it. Steps count from 0; the cosine reaches zero at step = total_steps, one
// past the last step (Loshchilov and Hutter 2017, without restarts; SimCLR section 2.1).
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/settings.h"

namespace simclr {

// For ScheduleType::kStep: milestones in steps from the start of the run, warm-up included, in ascending order.
struct ScheduleDrops {
  std::vector<int64_t> milestones;
  double gamma = 1;
};

class Schedule {
 public:
  Schedule(ScheduleType type, double peak, int64_t warmup_steps, int64_t total_steps, ScheduleDrops drops = {});

  double learning_rate(int64_t step) const;
  int64_t warmup_steps() const { return warmup_steps_; }

 private:
  ScheduleType type_;
  double peak_;
  int64_t warmup_steps_, total_steps_;
  ScheduleDrops drops_;
};

}  // namespace simclr
