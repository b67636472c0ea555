// Sums are recomputed over the window on each call: it is short, and rounding errors do not accumulate.
#include "src/metrics/throughput.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

Throughput::Throughput(int window, double now_s) : window_(window), last_s_(now_s) {
  SIMCLR_CHECK(window >= 1, "window is {}", window);
}

void Throughput::step_done(int64_t images, double now_s) {
  const Step step{images, now_s - last_s_};
  last_s_ = now_s;
  if (steps_.size() < window_) {
    steps_.push_back(step);
  } else {
    steps_[next_] = step;
    next_ = (next_ + 1) % window_;
  }
}

double Throughput::duration_s() const {
  double sum = 0;
  for (const Step& step : steps_) sum += step.duration_s;
  return sum;
}

double Throughput::images_per_s() const {
  int64_t images = 0;
  for (const Step& step : steps_) images += step.images;
  const double duration = duration_s();
  return duration > 0 ? as_double(images) / duration : 0;
}

double Throughput::time_left_s(int64_t steps_left) const {
  if (steps_.empty()) return 0;
  return duration_s() / as_double(steps_.size()) * as_double(steps_left);
}

}  // namespace simclr
