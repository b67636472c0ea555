// total += part, element by element: where two paths of the network meet in backward. No overlap.
#pragma once

#include "kernels/common/exec.h"

namespace simclr {

void add_to(const Exec& exec, int64_t elements, const float* part, float* total);

}  // namespace simclr
