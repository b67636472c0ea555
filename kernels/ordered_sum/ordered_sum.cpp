#include "kernels/ordered_sum/ordered_sum.h"

#include <bit>

namespace simclr {
namespace {

template <typename T>
void checked_sum(const Exec& exec, T* parts, int64_t count, int64_t stride, int64_t elements, T* sum) {
  SIMCLR_CHECK(count >= 1 && std::has_single_bit(static_cast<uint64_t>(count)), "{} parts: not a power of two", count);
  SIMCLR_CHECK(elements >= 0 && (stride >= elements || count == 1), "parts of {} elements, {} apart", elements, stride);
  std::visit([&](const auto& device) { detail::ordered_sum(device, parts, count, stride, elements, sum); }, exec);
}

}  // namespace

void ordered_sum(const Exec& exec, float* parts, int64_t count, int64_t stride, int64_t elements, float* sum) {
  checked_sum(exec, parts, count, stride, elements, sum);
}

void ordered_sum(const Exec& exec, double* parts, int64_t count, int64_t stride, int64_t elements, double* sum) {
  checked_sum(exec, parts, count, stride, elements, sum);
}

}  // namespace simclr
