// The devices of a build with CUDA; without_cuda/ has the file for one without. CMake chooses the folder.
#pragma once

#include <variant>

#include "kernels/common/cpu_exec.h"
#include "kernels/common/cuda_exec.h"

namespace simclr {
using Exec = std::variant<CpuExec, CudaExec>;
}  // namespace simclr
