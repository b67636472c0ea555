// Dynamic shared memory of a block as elements of T. emulator/include has this file for the emulator.
#pragma once

namespace simclr {

template <typename T>
__device__ T* dyn_shared() {
  extern __shared__ __align__(128) unsigned char simclr_dynamic_shared[];
  return reinterpret_cast<T*>(simclr_dynamic_shared);
}

}  // namespace simclr
