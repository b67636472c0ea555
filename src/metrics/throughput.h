// Images per second over the last steps, and the estimated time left. Times are passed in; it reads no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simclr {

class Throughput {
 public:
  // window: number of last steps that count, >= 1. now_s: seconds of a steady clock at the start of the first step.
  Throughput(int window, double now_s);

  void step_done(int64_t images, double now_s);
  // Excludes the time between the last step and now (evaluation, checkpoint).
  void leave_out_until(double now_s) { last_s_ = now_s; }

  double images_per_s() const;                   // 0 before the first step
  double time_left_s(int64_t steps_left) const;  // at the mean step time of the window; 0 before the first step

 private:
  struct Step {
    int64_t images;
    double duration_s;
  };
  double duration_s() const;

  size_t window_;
  double last_s_;
  std::vector<Step> steps_;  // a ring buffer once it has window_ steps
  size_t next_ = 0;
};

}  // namespace simclr
