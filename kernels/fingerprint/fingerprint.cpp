#include "kernels/fingerprint/fingerprint.h"

namespace simclr {

void add_fingerprint(const Exec& exec, std::span<const float> values, int64_t first, uint64_t* sum) {
  SIMCLR_CHECK(first >= 0 && sum, "a fingerprint from position {} on", first);
  std::visit([&](const auto& device) { detail::add_fingerprint(device, values, first, sum); }, exec);
}

}  // namespace simclr
