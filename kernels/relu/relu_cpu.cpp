#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/relu/relu_device.h"

namespace simclr::relu {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements of one task

SIMCLR_MULTIVERSION void forward_range(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];  // NaN < 0 is false: NaN stays
}

SIMCLR_MULTIVERSION void backward_range(const float* grad_y, const float* y, float* grad_x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) grad_x[i] = y[i] > 0.0F ? grad_y[i] : 0.0F;
}

}  // namespace

void forward(const CpuExec& exec, int64_t elements, const float* x, float* y, DataType type) {
  SIMCLR_CHECK(type == DataType::kFloat32, "relu of bfloat16 on the CPU");
  parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t c, int) {
    forward_range(x + c * kChunk, y + c * kChunk, std::min(kChunk, elements - c * kChunk));
  });
}

void backward(const CpuExec& exec, int64_t elements, const float* grad_y, const float* y, float* grad_x,
              DataType type) {
  SIMCLR_CHECK(type == DataType::kFloat32, "relu of bfloat16 on the CPU");
  parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t c, int) {
    const int64_t at = c * kChunk;
    backward_range(grad_y + at, y + at, grad_x + at, std::min(kChunk, elements - at));
  });
}

}  // namespace simclr::relu
