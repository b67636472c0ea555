#include "kernels/common/launch.cuh"
#include "kernels/fingerprint/fingerprint.h"
#include "kernels/fingerprint/mix.h"

namespace simclr::detail {
namespace {

// Integer atomics: addition modulo 2^64 has no order, so the number does not depend on who comes first.
__global__ void add_terms_kernel(const float* values, int64_t count, int64_t first, unsigned long long* sum) {
  unsigned long long mine = 0;
  const int64_t step = thread_count();
  for (int64_t i = thread_index(); i < count; i += step)
    mine += fingerprint_term(__float_as_uint(values[i]), static_cast<uint64_t>(first + i));
  atomicAdd(sum, mine);
}

}  // namespace

void add_fingerprint(const CudaExec& exec, std::span<const float> values, int64_t first, uint64_t* sum) {
  if (values.empty()) return;
  const auto count = std::ssize(values);
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  launch(exec, "fingerprint", elementwise_grid(count), add_terms_kernel, values.data(), count, first,
         reinterpret_cast<unsigned long long*>(sum));
}

}  // namespace simclr::detail
