#include "src/device/host_matrix.h"

#include <cstring>

#include "kernels/common/bfloat16.h"

namespace simclr {

ConstFloatMatrix HostMatrix::fetch(Device& device, const ConstMatrix& matrix) {
  if (device.is_cpu() && matrix.type() == DataType::kFloat32) return matrix.as<float>();
  const auto count = static_cast<size_t>(matrix.elements());
  raw_.resize(count * size_of(matrix.type()));
  values_.resize(count);
  device.download(raw_.data(), matrix.data.address(), raw_.size());
  if (matrix.type() == DataType::kFloat32) {
    std::memcpy(values_.data(), raw_.data(), raw_.size());
  } else {
    for (size_t i = 0; i < count; ++i) {
      Bfloat16 half;
      std::memcpy(&half, raw_.data() + i * sizeof half, sizeof half);
      values_[i] = as_float(half);
    }
  }
  return {values_.data(), matrix.rows, matrix.cols, matrix.stride};
}

}  // namespace simclr
