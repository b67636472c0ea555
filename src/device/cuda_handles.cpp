#include "src/device/cuda_handles.h"

#include "kernels/common/error.h"

namespace simclr {

CudaStream make_stream() {
  cudaStream_t stream = nullptr;
  SIMCLR_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return CudaStream(stream);
}

CudaStream make_urgent_stream() {
  int least = 0, greatest = 0;
  SIMCLR_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  SIMCLR_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return CudaStream(stream);
}

CudaEvent make_event() {
  cudaEvent_t event = nullptr;
  SIMCLR_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return CudaEvent(event);
}

CublasHandle make_cublas(cudaStream_t stream) {
  cublasHandle_t handle = nullptr;
  SIMCLR_CUBLAS(cublasCreate(&handle));
  CublasHandle owner(handle);
  SIMCLR_CUBLAS(cublasSetStream(handle, stream));
  return owner;
}

CudnnHandle make_cudnn(cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  SIMCLR_CUDNN(cudnnCreate(&handle));
  CudnnHandle owner(handle);
  SIMCLR_CUDNN(cudnnSetStream(handle, stream));
  return owner;
}

DeviceMemory make_device_memory(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: the device remains usable
    size_t free = 0, total = 0;
    SIMCLR_CUDA(cudaMemGetInfo(&free, &total));
    fail(ExitCode::kDevice,
         "no GPU memory for a buffer of {} bytes: {} MiB of {} are free; use a smaller batch or network", bytes,
         free >> 20, total >> 20);
  }
  SIMCLR_CUDA(status);
  return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory make_pinned_memory(size_t bytes) {
  void* memory = nullptr;
  SIMCLR_CUDA(cudaMallocHost(&memory, bytes));
  return PinnedMemory(static_cast<std::byte*>(memory));
}

void order_streams(cudaStream_t earlier, cudaEvent_t event, cudaStream_t later) {
  SIMCLR_CUDA(cudaEventRecord(event, earlier));
  SIMCLR_CUDA(cudaStreamWaitEvent(later, event, 0));
}

}  // namespace simclr
