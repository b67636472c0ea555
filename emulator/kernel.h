// Launches and their limits, for cudart_kernel.cpp. The launch itself is declared in include/language/launch.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace simclr::emulator {

inline constexpr size_t kMostShared = size_t{227} << 10;  // of a block, compute capability 9.0

// cudaFuncAttributeMaxDynamicSharedMemorySize.
cudaError_t set_shared_limit(const void* kernel, int bytes);

}  // namespace simclr::emulator
