// How numbers of the network are stored and multiplied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace simclr {

enum class DataType { kFloat32, kBfloat16 };

constexpr size_t size_of(DataType type) {
  return type == DataType::kBfloat16 ? 2 : 4;
}

// The address in a view as one of elements of T, which is what the view's type stands for.
template <typename T>
const T* stored_as(const float* p) {
  return reinterpret_cast<const T*>(p);
}
template <typename T>
T* stored_as(float* p) {
  return reinterpret_cast<T*>(p);
}

// The address of element i from an address in a view; T is float or const float.
template <typename T>
T* element_address(T* p, int64_t i, DataType type) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(p) + i * static_cast<int64_t>(size_of(type)));
}

// fp32: everything in single precision. tf32: stored as fp32, products on tensor cores with 10-bit mantissas. bf16:
// activations and the operands of products in bfloat16. Weights, sums, the loss and the optimizer are fp32 or wider in
// all three.
enum class Precision { kFp32, kTf32, kBf16 };

}  // namespace simclr
