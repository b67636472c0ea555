#include <algorithm>

#include "kernels/add/add_device.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"

namespace simclr::add {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements of one task

SIMCLR_MULTIVERSION void add_range(const float* __restrict part, float* __restrict total, int64_t count) {
  for (int64_t i = 0; i < count; ++i) total[i] += part[i];
}
SIMCLR_MULTIVERSION void add_range(const Bfloat16* __restrict part, Bfloat16* __restrict total, int64_t count) {
  for (int64_t i = 0; i < count; ++i) total[i] = to_bfloat16(as_float(total[i]) + as_float(part[i]));
}

}  // namespace

void add_to(const CpuExec& exec, int64_t elements, const float* part, float* total, DataType type) {
  with_element_type(type, [&]<typename T>(T) {
    parallel_for(exec, (elements + kChunk - 1) / kChunk, [&](int64_t c, int) {
      add_range(stored_as<T>(part) + c * kChunk, stored_as<T>(total) + c * kChunk,
                std::min(kChunk, elements - c * kChunk));
    });
  });
}

}  // namespace simclr::add
