// total += part, element by element: where two paths of the network meet in backward. No overlap.
// Both are stored as `type`; the sum of two bfloat16 is rounded once.
#pragma once

#include "kernels/common/exec.h"

namespace simclr {

void add_to(const Exec& exec, int64_t elements, const float* part, float* total, DataType type = DataType::kFloat32);

}  // namespace simclr
