// A matrix of the device on the host, in float32 whatever it is stored as.
#pragma once

#include <vector>

#include "kernels/common/views.h"
#include "src/device/device.h"

namespace simclr {

// Memory that is used again by the next fetch().
class HostMatrix {
 public:
  // In float32 on the CPU the matrix itself, else a copy that has arrived. Valid until the next fetch().
  ConstFloatMatrix fetch(Device& device, const ConstMatrix& matrix);

 private:
  std::vector<std::byte> raw_;
  std::vector<float> values_;
};

}  // namespace simclr
