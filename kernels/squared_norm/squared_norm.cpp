#include "kernels/squared_norm/squared_norm.h"
#include "kernels/common/numbers.h"

namespace simclr {

ScratchNeed squared_norms_scratch(std::span<const NormRun> runs) {
  int64_t blocks = 0;
  for (const NormRun& r : runs) blocks += (r.elements + detail::kNormBlock - 1) / detail::kNormBlock;
  return {.workspace_bytes = bytes_of<double>(blocks)};
}

void squared_norms(const Exec& exec, const NormTable& table, double* squares) {
  for (const NormRun& r : table.runs) {
    SIMCLR_CHECK(r.elements >= 0 && (r.values != nullptr || r.elements == 0), "a norm of {} elements at {}", r.elements,
                 static_cast<const void*>(r.values));
  }
  SIMCLR_CHECK(table.runs.empty() || table.on_device != nullptr, "the table is not on the device");
  std::visit([&](const auto& device) { detail::squared_norms(device, table, squares); }, exec);
}

void total_squared_norm(const Exec& exec, const double* squares, int64_t count, double* total) {
  SIMCLR_CHECK(count >= 0, "a sum of {} squares", count);
  std::visit([&](const auto& device) { detail::total_squared_norm(device, squares, count, total); }, exec);
}

}  // namespace simclr
