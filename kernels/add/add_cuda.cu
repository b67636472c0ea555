// add on CUDA. Four elements a thread; addresses are those of buffers or rows, multiples of four elements.
#include "kernels/add/add_device.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"

namespace simclr::add {
namespace {

template <typename T>
__global__ void add_kernel(int64_t elements, const T* __restrict__ part, T* __restrict__ total) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * kFour;
  int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kFour;
  for (; i < elements; i += step) {
    float a[kFour], b[kFour];
    load_four(total + i, elements - i, a);
    load_four(part + i, elements - i, b);
    for (int k = 0; k < kFour; ++k) a[k] += b[k];
    store_four(total + i, elements - i, a);
  }
}

}  // namespace

void add_to(const CudaExec& exec, int64_t elements, const float* part, float* total, DataType type) {
  if (elements == 0) return;
  with_storage(type, [&]<typename T>(T) {
    launch(exec, "add_to", elementwise_grid(ceil_div(elements, kFour)), add_kernel<T>, elements, stored_as<T>(part),
           stored_as<T>(total));
  });
}

}  // namespace simclr::add
