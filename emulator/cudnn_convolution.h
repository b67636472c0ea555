// One convolution of the fake cuDNN as plain numbers, and its arithmetic: any strides, float32 or bfloat16 storage,
// sums in float32 in an order that depends on the shape alone (not on threads, not on the number of samples).
#pragma once

#include <array>
#include <cstdint>

#include "emulator/cudnn_objects.h"

namespace simclr::emulator::cudnn {

struct Tensor {
  cudnnDataType_t type{};
  std::array<int64_t, 4> dims{}, strides{};  // [n, c, h, w] or [k, c, r, s]; strides in elements
  int64_t id = 0, alignment = 0;

  size_t element_bytes() const { return type == CUDNN_DATA_BFLOAT16 ? 2 : 4; }
  size_t extent_bytes() const;  // from the first element to the end of the last
};

struct Convolution {
  cudnnBackendDescriptorType_t pass{};
  Tensor x, filter, y;  // or their gradients
  std::array<int64_t, 2> padding{}, stride{}, dilation{};
  float alpha = 1.0F, beta = 0.0F;

  const Tensor& output() const;
};

// Reads a finalized operation, or one that has all its attributes.
Convolution read_convolution(const Object& operation);
Tensor read_tensor(const Object& tensor);

// output = alpha * convolution + beta * output; beta 0 never reads the output. tensor_cores rounds float32 operands to
// the 10-bit mantissas of TF32.
void compute(const Convolution& convolution, const void* x, const void* filter, const void* y, void* output,
             bool tensor_cores);

}  // namespace simclr::emulator::cudnn
