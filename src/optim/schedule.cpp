#include "src/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

Schedule::Schedule(ScheduleType type, double peak, int64_t warmup_steps, int64_t total_steps, ScheduleDrops drops)
    : type_(type), peak_(peak), warmup_steps_(warmup_steps), total_steps_(total_steps), drops_(std::move(drops)) {
  SIMCLR_CHECK(warmup_steps >= 0 && total_steps >= 0, "schedule of {} steps with {} of warm-up", total_steps,
               warmup_steps);
}

double Schedule::learning_rate(int64_t step) const {
  if (step < warmup_steps_) return peak_ * as_double(step + 1) / as_double(warmup_steps_);
  if (type_ == ScheduleType::kConstant) return peak_;
  if (type_ == ScheduleType::kStep) {
    double rate = peak_;
    for (const int64_t milestone : drops_.milestones)
      if (milestone <= step) rate *= drops_.gamma;
    return rate;
  }
  const double done = as_double(step - warmup_steps_), all = as_double(total_steps_ - warmup_steps_);
  return all <= 0 ? 0.0 : 0.5 * peak_ * (1.0 + std::cos(std::numbers::pi * std::min(1.0, done / all)));
}

}  // namespace simclr
