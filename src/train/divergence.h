// Whether a run has diverged, and the errors that end it on all ranks at the same step.
#pragma once

#include <span>
#include <string>

#include "src/comm/agreement.h"
#include "src/comm/control_channel.h"
#include "src/config/settings.h"
#include "src/runtime/run_context.h"

namespace simclr {

// A flag on the device that is set, and stays set, when loss or gradients are not finite: the updates of that step and
// of all that follow then do nothing.
class NonFiniteFlag {
 public:
  explicit NonFiniteFlag(const RunContext& run) : run_(run), flag_(run.context.allocate_elements<int>(1)) {}

  void check(const double* loss, std::span<const float> gradients);  // queued on the device
  const int* on_device() const { return flag_.as<int>().data(); }
  bool read() const;  // waits for the device; for the moments that do so anyway

 private:
  const RunContext run_;
  Buffer flag_;
};

// checkpoint: the last one; empty: none.
AgreedError divergence_error(int64_t step, LossType loss, const std::string& checkpoint);
AgreedError non_finite_state_error(int64_t step, const std::string& checkpoint);
// drift: the tensors that differ now, as StateIo::describe_drift().
AgreedError drift_error(const Decision& decision, const std::string& drift, const std::string& checkpoint);

}  // namespace simclr
