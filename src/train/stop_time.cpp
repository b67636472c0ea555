#include "src/train/stop_time.h"

#include <algorithm>
#include <cmath>

#include "src/base/log.h"
#include "src/base/progress_line.h"

namespace simclr {
namespace {

constexpr double kWorthALineS = 5;  // seconds a step
// What a save may take on a slow disk: the grace period in the line has to be enough.
constexpr double kSaveS = 10, kSlowDiskBytesPerS = 20e6;

double total_bytes(std::span<const NamedTensor> tensors) {
  int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) bytes += tensor.bytes();
  return static_cast<double>(bytes);
}

}  // namespace

StopTime::StopTime(std::span<const NamedTensor> state) : state_bytes_(total_bytes(state)) {}

void StopTime::begin_step() {
  step_began_s_ = part_began_s_ = monotonic_seconds();
  longest_part_s_ = 0;
}

void StopTime::end_part() {
  const double now_s = monotonic_seconds();
  longest_part_s_ = std::max(longest_part_s_, now_s - part_began_s_);
  part_began_s_ = now_s;
}

double StopTime::end_step() {
  end_part();
  return part_began_s_ - step_began_s_;
}

void StopTime::log_once(double step_s) {
  if (logged_ || step_s < kWorthALineS) return;
  logged_ = true;
  const double save_s = kSaveS + state_bytes_ / kSlowDiskBytesPerS;
  const int grace_s = 10 * static_cast<int>(std::ceil((step_s + save_s) / 10));
  log_info(
      "a step takes {:.1f} s: a stop abandons the step under way within about {:.1f} s and then writes {:.0f} MB; "
      "allow "
      "for a grace period of at least {} s (Slurm: --signal=B:USR1@{}; docker stop -t {}; Kubernetes: "
      "terminationGracePeriodSeconds: {})",
      step_s, longest_part_s_, state_bytes_ * 1e-6, grace_s, grace_s, grace_s, grace_s);
}

}  // namespace simclr
