#include "src/train/recorded_plans.h"

#include <algorithm>

#include "src/config/loader.h"

namespace simclr {

RecordedPlans recorded_plans(const CheckpointHeader& saved, const Settings& now) {
  const Settings before = settings_from_string(saved.config_yaml, "the configuration of the checkpoint");
  const ConvolutionAlgorithm wanted = now.model.convolution;
  if (wanted != before.model.convolution) return {.names = {}, .otherwise = wanted};
  const auto plans = saved.environment.find(kPlansKey);
  if (plans == saved.environment.end()) return {.names = {}, .otherwise = ConvolutionAlgorithm::kDirect};
  return {.names = read_plan_names(plans->second), .otherwise = wanted};
}

bool lack_winograd_of(const PlanNames& recorded, const PlanNames& mine) {
  return std::any_of(recorded.begin(), recorded.end(), [&](const auto& plan) {
    const auto own = mine.find(plan.first);
    return plan.second.find("winograd") != std::string::npos && own != mine.end() && own->second != plan.second;
  });
}

}  // namespace simclr
