// What each device implements of add. Not for users of the op.
#pragma once

#include "kernels/add/add.h"

namespace simclr::add {

void add_to(const CpuExec&, int64_t elements, const float* part, float* total, DataType type);

void add_to(const CudaExec&, int64_t elements, const float* part, float* total, DataType type);

}  // namespace simclr::add
