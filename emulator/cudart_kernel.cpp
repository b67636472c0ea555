// cudart: what can be set and asked of a kernel.
#include <cuda_runtime.h>

#include <algorithm>

#include "emulator/block.h"
#include "emulator/errors.h"
#include "emulator/kernel.h"
#include "emulator/runtime.h"

using namespace simclr::emulator;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return guarded([&] {
    switch (attribute) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize:
        return set_shared_limit(kernel, value);
      case cudaFuncAttributePreferredSharedMemoryCarveout:  // a hint
        return cudaSuccess;
      default:
        return refuse(cudaErrorNotSupported, "cudaFuncSetAttribute: attribute %d is not emulated",
                      static_cast<int>(attribute));
    }
  });
}

// Registers are unknown here: threads and shared memory alone limit.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* /*kernel*/, int threads,
                                                                   size_t shared_bytes, unsigned /*flags*/) {
  return guarded([&] {
    if (threads < 1 || threads > static_cast<int>(kMostThreads) || shared_bytes > kMostShared) {
      return refuse(cudaErrorInvalidValue, "occupancy of blocks of %d threads with %zu bytes", threads, shared_bytes);
    }
    constexpr int kBlocks = 32;
    constexpr int kThreads = 2048;
    const int by_memory = shared_bytes == 0 ? kBlocks : static_cast<int>(kMostShared / shared_bytes);
    *blocks = std::min({kBlocks, kThreads / threads, by_memory});
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared_bytes, 0);
}

}  // extern "C"
