// The devices of a build without CUDA; with_cuda/ has the file for one with it. CMake chooses the folder.
#pragma once

#include <variant>

#include "kernels/common/cpu_exec.h"

namespace simclr {
using Exec = std::variant<CpuExec>;
}  // namespace simclr
