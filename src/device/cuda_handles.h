// Move-only owners of what CUDA, cuBLAS and cuDNN hand out. Making one throws Error(kDevice); destroying one never
// throws: a device that is broken by then has been reported by the call that broke it.
#pragma once

#include <memory>
#include <type_traits>

#include "kernels/common/cuda_check.h"

namespace simclr {

template <typename Handle, auto kDestroy>
struct DestroyHandle {
  void operator()(Handle handle) const noexcept { static_cast<void>(kDestroy(handle)); }
};
template <typename Handle, auto kDestroy>
using UniqueHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyHandle<Handle, kDestroy>>;

using CudaStream = UniqueHandle<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
using CublasHandle = UniqueHandle<cublasHandle_t, cublasDestroy>;
using CudnnHandle = UniqueHandle<cudnnHandle_t, cudnnDestroy>;
using DeviceMemory = std::unique_ptr<std::byte, DestroyHandle<std::byte*, cudaFree>>;
using PinnedMemory = std::unique_ptr<std::byte, DestroyHandle<std::byte*, cudaFreeHost>>;

CudaStream make_stream();         // does not wait for the default stream
CudaStream make_urgent_stream();  // of the highest priority: for what others wait for
CudaEvent make_event();           // for order alone, without time stamps
CublasHandle make_cublas(cudaStream_t stream);
CudnnHandle make_cudnn(cudaStream_t stream);
DeviceMemory make_device_memory(size_t bytes);  // not cleared; the message names the size and what is free
PinnedMemory make_pinned_memory(size_t bytes);

// Work queued on `later` after this call runs after what is on `earlier` now.
void order_streams(cudaStream_t earlier, cudaEvent_t event, cudaStream_t later);

}  // namespace simclr
