// Which algorithm each convolution uses where its device offers several: the same on all ranks and, in a resumed run,
// the one of the checkpoint, because results depend on it in their last bits.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kernels/conv2d/algorithm.h"

namespace simclr {

// Conv2dPlan::choice() by the name of the convolution's weight.
using PlanNames = std::map<std::string, std::string>;

// Parses the text of Model::describe_plans(): "conv1.weight: PLAN; PLAN; layer1.0.conv1.weight: PLAN; PLAN; PLAN".
PlanNames read_plan_names(const std::string& text);

// Such a text of a CPU, in short: "direct", or "Winograd F(4x4, 3x3) in 12 of 59 passes, direct in the others".
std::string summarize_cpu_plans(const std::string& text);

struct PlanChoices {
  // For convolutions that `before` does not name.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto;
  // The plans of the checkpoint; each is used if the library still offers it. Filled on rank 0 only, whose choice is
  // shared.
  PlanNames before;
  // Takes this rank's choice, returns the one that all ranks use. Collective; called once for each convolution.
  std::function<std::string(const std::string& mine)> share = [](const std::string& mine) { return mine; };
};

}  // namespace simclr
