// Dynamic shared memory of a block as elements of T: the emulator's twin of kernels/common/nvcc/dynamic_shared.cuh.
#pragma once

#include <cuda_runtime.h>

namespace simclr {

template <typename T>
T* dyn_shared() {
  return static_cast<T*>(emulator::dynamic_shared());
}

}  // namespace simclr
