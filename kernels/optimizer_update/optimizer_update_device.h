// What each device implements of optimizer_update. Not for users of the op.
#pragma once

#include "kernels/optimizer_update/optimizer_update.h"

namespace simclr::optimizer_update {

void sgd(const CpuExec&, std::span<const ParameterRun> runs, const SgdUpdate& how, const int* skip);
void adamw(const CpuExec&, std::span<const ParameterRun> runs, const AdamWUpdate& how, const int* skip);
void flag_non_finite(const CpuExec&, std::span<const float> values, int* flag);

}  // namespace simclr::optimizer_update
