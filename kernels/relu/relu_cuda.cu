// relu on CUDA. Four elements a thread; addresses are those of buffers or rows, multiples of four elements.
#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/relu/relu_device.h"

namespace simclr::relu {
namespace {

template <typename T>
__global__ void forward_kernel(int64_t elements, const T* x, T* y) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kFour;
  int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kFour;
  for (; i < elements; i += step) {
    float v[kFour];
    load_four(x + i, elements - i, v);
    for (float& value : v) value = relu_of(value);
    store_four(y + i, elements - i, v);
  }
}

template <typename T>
__global__ void backward_kernel(int64_t elements, const T* grad_y, const T* y, T* grad_x) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kFour;
  int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kFour;
  for (; i < elements; i += step) {
    float g[kFour], v[kFour];
    load_four(grad_y + i, elements - i, g);
    load_four(y + i, elements - i, v);
    for (int k = 0; k < kFour; ++k) g[k] = v[k] > 0.0F ? g[k] : 0.0F;
    store_four(grad_x + i, elements - i, g);
  }
}

}  // namespace

void forward(const CudaExec& exec, int64_t elements, const float* x, float* y, DataType type) {
  if (elements == 0) return;
  with_storage(type, [&]<typename T>(T) {
    launch(exec, "relu_forward", elementwise_grid(ceil_div(elements, kFour)), forward_kernel<T>, elements,
           stored_as<T>(x), stored_as<T>(y));
  });
}

void backward(const CudaExec& exec, int64_t elements, const float* grad_y, const float* y, float* grad_x,
              DataType type) {
  if (elements == 0) return;
  with_storage(type, [&]<typename T>(T) {
    launch(exec, "relu_backward", elementwise_grid(ceil_div(elements, kFour)), backward_kernel<T>, elements,
           stored_as<T>(grad_y), stored_as<T>(y), stored_as<T>(grad_x));
  });
}

}  // namespace simclr::relu
