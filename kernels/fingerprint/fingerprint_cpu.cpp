#include <algorithm>
#include <atomic>
#include <bit>

#include "kernels/common/parallel.h"
#include "kernels/fingerprint/fingerprint.h"
#include "kernels/fingerprint/mix.h"

namespace simclr::detail {
namespace {

constexpr int64_t kChunk = 1 << 15;  // elements of one task

SIMCLR_MULTIVERSION uint64_t sum_of_terms(const float* values, uint64_t first, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += fingerprint_term(std::bit_cast<uint32_t>(values[i]), first + static_cast<uint64_t>(i));
  return sum;
}

}  // namespace

void add_fingerprint(const CpuExec& exec, std::span<const float> values, int64_t first, uint64_t* sum) {
  const auto count = std::ssize(values);
  std::atomic<uint64_t> total = 0;  // addition modulo 2^64 has no order
  parallel_for(exec, (count + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kChunk;
    total += sum_of_terms(values.data() + begin, static_cast<uint64_t>(first + begin), std::min(kChunk, count - begin));
  });
  *sum += total;
}

}  // namespace simclr::detail
