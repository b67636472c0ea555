// How numbers of the network are stored and multiplied.
#pragma once

#include <cstddef>

namespace simclr {

enum class DataType { kFloat32, kBfloat16 };

constexpr size_t size_of(DataType type) {
  return type == DataType::kBfloat16 ? 2 : 4;
}

// fp32: everything in single precision. tf32: stored as fp32, products on tensor cores with 10-bit mantissas. bf16:
// activations and the operands of products in bfloat16. Weights, sums, the loss and the optimizer are fp32 or wider in
// all three.
enum class Precision { kFp32, kTf32, kBf16 };

}  // namespace simclr
