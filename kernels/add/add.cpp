#include "kernels/add/add.h"

#include "kernels/add/add_device.h"

namespace simclr {

void add_to(const Exec& exec, int64_t elements, const float* part, float* total, DataType type) {
  SIMCLR_CHECK(elements >= 0 && part != total, "add of {} elements", elements);
  std::visit([&](const auto& device) { add::add_to(device, elements, part, total, type); }, exec);
}

}  // namespace simclr
