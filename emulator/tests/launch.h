// The shortest launch, for the kernels of these tests.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace simclr::test {

struct Shape {
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;
};

template <typename... Parameters, typename... Arguments>
cudaError_t launch(const Shape& shape, cudaStream_t stream, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace simclr::test
