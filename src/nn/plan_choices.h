// Which algorithm each convolution uses where its device has several: the same on all ranks and, on a resumed run, the
// one that it had before, since bits depend on it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kernels/conv2d/algorithm.h"

namespace simclr {

// What Conv2dPlan::choice() says, by the name of the convolution's weight.
using PlanNames = std::map<std::string, std::string>;

// Reads what Model::describe_plans() writes: "conv1.weight: PLAN; PLAN; layer1.0.conv1.weight: PLAN; PLAN; PLAN".
PlanNames read_plan_names(const std::string& text);

// Such a text of a CPU in one sentence: "direct", or "Winograd F(4x4, 3x3) in 12 of 59 passes, direct in the others".
std::string summarize_cpu_plans(const std::string& text);

struct PlanChoices {
  // Of what `before` does not name.
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kAuto;
  // Of the run that is resumed: each is taken where the library still makes it. Only on the rank whose choice is
  // shared.
  PlanNames before;
  // Takes this rank's choice, returns the one in force. Collective, once for each convolution.
  std::function<std::string(const std::string& mine)> share = [](const std::string& mine) { return mine; };
};

}  // namespace simclr
