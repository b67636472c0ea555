// elementwise on the CPU: tasks of kChunk elements, each a loop that is compiled per instruction set.
#include <algorithm>

#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"
#include "kernels/elementwise/elementwise_device.h"

namespace simclr::elementwise {
namespace {

// f(begin, count) for every task.
template <typename F>
void for_each_chunk(const CpuExec& exec, int64_t elements, F&& f) {
  constexpr int64_t kChunk = 1 << 16;
  parallel_for(exec, (elements + kChunk - 1) / kChunk,
               [&](int64_t c, int) { f(c * kChunk, std::min(kChunk, elements - c * kChunk)); });
}

SIMCLR_MULTIVERSION void add_range(const float* __restrict part, float* __restrict total, int64_t count) {
  for (int64_t i = 0; i < count; ++i) total[i] += part[i];
}
SIMCLR_MULTIVERSION void add_range(const Bfloat16* __restrict part, Bfloat16* __restrict total, int64_t count) {
  for (int64_t i = 0; i < count; ++i) total[i] = to_bfloat16(as_float(total[i]) + as_float(part[i]));
}

SIMCLR_MULTIVERSION void relu_range(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];  // NaN < 0 is false: NaN stays
}
SIMCLR_MULTIVERSION void relu_range(const Bfloat16* x, Bfloat16* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i].bits = as_float(x[i]) < 0.0F ? 0 : x[i].bits;
}

SIMCLR_MULTIVERSION void mask_range(const float* grad_y, const float* y, float* grad_x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) grad_x[i] = y[i] > 0.0F ? grad_y[i] : 0.0F;
}
SIMCLR_MULTIVERSION void mask_range(const Bfloat16* grad_y, const Bfloat16* y, Bfloat16* grad_x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) grad_x[i].bits = as_float(y[i]) > 0.0F ? grad_y[i].bits : 0;
}

}  // namespace

void add_to(const CpuExec& exec, int64_t elements, ConstElements part, Elements total) {
  with_element_type(total.type(), [&]<typename T>(T) {
    const T* from = part.as<T>();
    T* to = total.as<T>();
    for_each_chunk(exec, elements, [&](int64_t at, int64_t count) { add_range(from + at, to + at, count); });
  });
}

void relu_forward(const CpuExec& exec, int64_t elements, ConstElements x, Elements y) {
  with_element_type(y.type(), [&]<typename T>(T) {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    for_each_chunk(exec, elements, [&](int64_t at, int64_t count) { relu_range(from + at, to + at, count); });
  });
}

void relu_backward(const CpuExec& exec, int64_t elements, ConstElements grad_y, ConstElements y, Elements grad_x) {
  with_element_type(grad_x.type(), [&]<typename T>(T) {
    const T *from = grad_y.as<T>(), *mask = y.as<T>();
    T* to = grad_x.as<T>();
    for_each_chunk(exec, elements,
                   [&](int64_t at, int64_t count) { mask_range(from + at, mask + at, to + at, count); });
  });
}

}  // namespace simclr::elementwise
