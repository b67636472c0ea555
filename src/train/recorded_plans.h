// The convolution plans that a checkpoint records. A resumed run and a trained encoder use the same ones, since the bits
// depend on them.
#pragma once

#include "src/checkpoint/training_state.h"
#include "src/config/settings.h"
#include "src/nn/plan_choices.h"

namespace simclr {

constexpr const char* kPlansKey = "plans";  // in a checkpoint's environment: Model::describe_plans()

struct RecordedPlans {
  PlanNames names;
  ConvolutionAlgorithm otherwise = ConvolutionAlgorithm::kAuto;  // for a convolution without a recorded plan
};

// The recorded plans, unless `now` has another model.convolution than the checkpoint. A CPU's checkpoint without plans
// was computed with direct convolutions.
RecordedPlans recorded_plans(const CheckpointHeader& saved, const Settings& now);

// Whether `mine`, a CPU's plans, lack a Winograd convolution that `recorded` has: this oneDNN or processor has none.
bool lack_winograd_of(const PlanNames& recorded, const PlanNames& mine);

}  // namespace simclr
