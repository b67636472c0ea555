// The one way a kernel is launched, and the one way it gets dynamic shared memory. Only for *.cu files.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dynamic_shared.cuh"  // dyn_shared<T>(): of nvcc/ or of the emulator
#include "kernels/common/cuda_exec.h"
#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

struct Grid {
  dim3 blocks = 1;
  dim3 threads = 1;
  size_t shared_bytes = 0;  // dynamic, in addition to what the kernel declares
};

inline constexpr int kThreads = 256;  // per block, where nothing speaks for another number

constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// A count of blocks as a launch takes it.
constexpr unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(count);
}

// One thread for each of `count` elements; element thread_index().
inline Grid thread_each(int64_t count) {
  return {.blocks = blocks_of(ceil_div(count, kThreads)), .threads = kThreads};
}

// In a kernel: the thread's index in the whole grid, along x, and the number of threads of the grid.
__device__ inline int64_t thread_index() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t thread_count() {
  return int64_t{gridDim.x} * blockDim.x;
}

// Blocks for a loop in which each thread takes element thread_index() and continues in steps of thread_count(): as many
// as there is work, at most what keeps every multiprocessor busy. Only for work whose bits do not depend on which thread
// does it.
inline Grid elementwise_grid(int64_t elements) {
  constexpr int64_t kMostBlocks = 4096;
  return {.blocks = blocks_of(std::clamp<int64_t>(ceil_div(elements, kThreads), 1, kMostBlocks)), .threads = kThreads};
}

// Queues kernel<<<grid>>>(args...) on exec.stream. A launch that the device refuses throws Error(kDevice) that names
// it; an error while the kernel runs shows at a later call.
template <typename... Params, typename... Args>
void launch(const CudaExec& exec, const char* name, const Grid& grid, void (*kernel)(Params...), Args&&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = exec.stream;
  constexpr size_t kSharedWithoutAsking = 48 * 1024;
  cudaError_t status = cudaSuccess;
  if (grid.shared_bytes > kSharedWithoutAsking) {
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  to_int(grid.shared_bytes));
  }
  if (status == cudaSuccess) status = cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
  if (status != cudaSuccess) {
    fail(ExitCode::kDevice, "CUDA: kernel {} with {}x{}x{} blocks of {} threads and {} bytes of shared memory: {} ({})",
         name, grid.blocks.x, grid.blocks.y, grid.blocks.z, grid.threads.x * grid.threads.y * grid.threads.z,
         grid.shared_bytes, cudaGetErrorString(status), to_int(status));
  }
}

}  // namespace simclr
