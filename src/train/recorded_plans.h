// What a checkpoint says about how its convolutions were computed, for whoever goes on from it or looks at its encoder:
// the bits follow from it.
#pragma once

#include "src/checkpoint/training_state.h"
#include "src/config/settings.h"
#include "src/nn/plan_choices.h"

namespace simclr {

constexpr const char* kPlansKey = "plans";  // in a checkpoint's environment: Model::describe_plans()

struct RecordedPlans {
  PlanNames names;
  ConvolutionAlgorithm otherwise = ConvolutionAlgorithm::kAuto;  // of a convolution without a name among them
};

// For settings `now`: what was recorded, unless another model.convolution is asked for than then. A CPU's checkpoint
// without plans was computed with direct convolutions, which was all there was.
RecordedPlans recorded_plans(const CheckpointHeader& saved, const Settings& now);

// Whether `mine`, a CPU's plans, lack a Winograd convolution that `recorded` has: this oneDNN or processor has none.
bool lack_winograd_of(const PlanNames& recorded, const PlanNames& mine);

}  // namespace simclr
