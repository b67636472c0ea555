// elementwise on CUDA. Four elements a thread; addresses are those of buffers or rows, multiples of four elements.
#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/elementwise/elementwise_device.h"

namespace simclr::elementwise {
namespace {

// f(first element) for each four elements that the thread has.
template <typename F>
__device__ void for_each_four(int64_t elements, F&& f) {
  for (int64_t i = thread_index() * kFour; i < elements; i += thread_count() * kFour) f(i);
}

template <typename T>
__global__ void add_kernel(int64_t elements, const T* __restrict__ part, T* __restrict__ total) {
  for_each_four(elements, [&](int64_t i) {
    float a[kFour], b[kFour];
    load_four(total + i, elements - i, a);
    load_four(part + i, elements - i, b);
    for (int k = 0; k < kFour; ++k) a[k] += b[k];
    store_four(total + i, elements - i, a);
  });
}

template <typename T>
__global__ void relu_forward_kernel(int64_t elements, const T* x, T* y) {
  for_each_four(elements, [&](int64_t i) {
    float v[kFour];
    load_four(x + i, elements - i, v);
    for (float& value : v) value = relu_of(value);
    store_four(y + i, elements - i, v);
  });
}

template <typename T>
__global__ void relu_backward_kernel(int64_t elements, const T* grad_y, const T* y, T* grad_x) {
  for_each_four(elements, [&](int64_t i) {
    float g[kFour], v[kFour];
    load_four(grad_y + i, elements - i, g);
    load_four(y + i, elements - i, v);
    for (int k = 0; k < kFour; ++k) g[k] = v[k] > 0.0F ? g[k] : 0.0F;
    store_four(grad_x + i, elements - i, g);
  });
}

Grid four_a_thread(int64_t elements) {
  return elementwise_grid(ceil_div(elements, kFour));
}

}  // namespace

void add_to(const CudaExec& exec, int64_t elements, ConstElements part, Elements total) {
  if (elements == 0) return;
  with_storage(total.type(), [&]<typename T>(T) {
    launch(exec, "add_to", four_a_thread(elements), add_kernel<T>, elements, part.as<T>(), total.as<T>());
  });
}

void relu_forward(const CudaExec& exec, int64_t elements, ConstElements x, Elements y) {
  if (elements == 0) return;
  with_storage(y.type(), [&]<typename T>(T) {
    launch(exec, "relu_forward", four_a_thread(elements), relu_forward_kernel<T>, elements, x.as<T>(), y.as<T>());
  });
}

void relu_backward(const CudaExec& exec, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x) {
  if (elements == 0) return;
  with_storage(grad_x.type(), [&]<typename T>(T) {
    launch(exec, "relu_backward", four_a_thread(elements), relu_backward_kernel<T>, elements, grad_y.as<T>(), y.as<T>(),
           grad_x.as<T>());
  });
}

}  // namespace simclr::elementwise
