#include <algorithm>

#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"
#include "kernels/relu/relu_device.h"

namespace simclr::relu {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements of one task

SIMCLR_MULTIVERSION void forward_range(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];  // NaN < 0 is false: NaN stays
}
SIMCLR_MULTIVERSION void forward_range(const Bfloat16* x, Bfloat16* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i].bits = as_float(x[i]) < 0.0F ? 0 : x[i].bits;
}

SIMCLR_MULTIVERSION void backward_range(const float* grad_y, const float* y, float* grad_x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) grad_x[i] = y[i] > 0.0F ? grad_y[i] : 0.0F;
}
SIMCLR_MULTIVERSION void backward_range(const Bfloat16* grad_y, const Bfloat16* y, Bfloat16* grad_x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) grad_x[i].bits = as_float(y[i]) > 0.0F ? grad_y[i].bits : 0;
}

}  // namespace

void forward(const CpuExec& exec, int64_t elements, const float* x, float* y, DataType type) {
  with_element_type(type, [&]<typename T>(T) {
    parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t c, int) {
      forward_range(stored_as<T>(x) + c * kChunk, stored_as<T>(y) + c * kChunk,
                    std::min(kChunk, elements - c * kChunk));
    });
  });
}

void backward(const CpuExec& exec, int64_t elements, const float* grad_y, const float* y, float* grad_x,
              DataType type) {
  with_element_type(type, [&]<typename T>(T) {
    parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t c, int) {
      const int64_t at = c * kChunk;
      backward_range(stored_as<T>(grad_y) + at, stored_as<T>(y) + at, stored_as<T>(grad_x) + at,
                     std::min(kChunk, elements - at));
    });
  });
}

}  // namespace simclr::relu
