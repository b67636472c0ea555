// Images a second over the last steps, and the time that is left. Takes times, reads no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simclr {

class Throughput {
 public:
  // window: so many last steps count; >= 1. now_s: seconds of a steady clock, at the start of the first step.
  Throughput(int window, double now_s);

  void step_done(int64_t images, double now_s);
  // What lay between the last step and now (evaluation, checkpoint) belongs to no step.
  void leave_out_until(double now_s) { last_s_ = now_s; }

  double images_per_s() const;                   // 0 before the first step
  double time_left_s(int64_t steps_left) const;  // at the mean pace of the window; 0 before the first step

 private:
  struct Step {
    int64_t images;
    double duration_s;
  };
  double duration_s() const;

  size_t window_;
  double last_s_;
  std::vector<Step> steps_;  // ring once it has `window_` steps
  size_t next_ = 0;
};

}  // namespace simclr
