// How long a stop takes, measured in the steps that are made: for the grace period that a scheduler has to give.
#pragma once

#include <cstdint>
#include <span>

#include "src/checkpoint/safetensors.h"

namespace simclr {

class StopTime {
 public:
  // state: what a checkpoint holds.
  explicit StopTime(std::span<const NamedTensor> state);

  // A step, and the parts of it between the places where it can be abandoned.
  void begin_step();
  void end_part();
  double end_step();  // its seconds

  // One line, the first time that a step takes longer than five seconds: what a stop takes, what to ask of schedulers.
  void log_once(double step_s);

 private:
  const double state_bytes_;
  double step_began_s_ = 0, part_began_s_ = 0, longest_part_s_ = 0;
  bool logged_ = false;
};

}  // namespace simclr
