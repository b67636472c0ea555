#include "src/device/host_matrix.h"

#include <bit>
#include <cstring>

namespace simclr {

ConstMatrix HostMatrix::fetch(Device& device, const ConstMatrix& matrix) {
  if (device.is_cpu()) return matrix;
  const auto count = static_cast<size_t>(matrix.elements());
  raw_.resize(count * size_of(matrix.type));
  values_.resize(count);
  device.download(raw_.data(), matrix.data, raw_.size());
  if (matrix.type == DataType::kFloat32) {
    std::memcpy(values_.data(), raw_.data(), raw_.size());
  } else {
    for (size_t i = 0; i < count; ++i) {  // bfloat16 is the upper half of a float32
      uint16_t half = 0;
      std::memcpy(&half, raw_.data() + i * sizeof half, sizeof half);
      values_[i] = std::bit_cast<float>(uint32_t{half} << 16);
    }
  }
  return {values_.data(), matrix.rows, matrix.cols, matrix.stride};
}

}  // namespace simclr
