// The address of a tensor's elements together with the type that they are stored as. It counts in elements, but there
// is no `[]` and no `*`: code that reads or writes asks for the type it computes with, x.as<float>(), and gets a
// pointer only if that is what is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/data_type.h"

namespace simclr {

// The DataType of a C++ type: float here, Bfloat16 in bfloat16.h, __nv_bfloat16 in storage.cuh.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::kFloat32;
};
template <typename T>
concept Element = requires {
  DataTypeOf<std::remove_const_t<T>>::value;
};

// Throws Error(kOther): a defect of the program.
[[noreturn]] void wrong_element_type(DataType stored, DataType asked);

// Void is void or const void.
template <typename Void>
class BasicElements {
  static constexpr bool kConst = std::is_const_v<Void>;
  template <typename T>
  using Like = std::conditional_t<kConst, const T, T>;

 public:
  BasicElements() = default;  // none
  BasicElements(std::nullptr_t) {}
  BasicElements(Void* address, DataType type) : address_(address), type_(type) {}
  template <Element T>
  BasicElements(T* first) requires(kConst || !std::is_const_v<T>)
      : address_(first), type_(DataTypeOf<std::remove_const_t<T>>::value) {}
  template <typename Other>
  BasicElements(const BasicElements<Other>& o) requires(kConst && !std::is_const_v<Other>)
      : address_(o.address()), type_(o.type()) {}

  DataType type() const { return type_; }
  Void* address() const { return address_; }  // for libraries, which take a type of their own next to it
  explicit operator bool() const { return address_ != nullptr; }

  // The first element; null where there is none, of whatever type.
  template <Element T>
  Like<T>* as() const {
    if (address_ && type_ != DataTypeOf<T>::value) [[unlikely]]
      wrong_element_type(type_, DataTypeOf<T>::value);
    return static_cast<Like<T>*>(address_);
  }

  BasicElements operator+(int64_t elements) const {
    return {static_cast<Like<std::byte>*>(address_) + elements * size_of(type_), type_};
  }
  friend bool operator==(const BasicElements& a, const BasicElements& b) { return a.address_ == b.address_; }

 private:
  Void* address_ = nullptr;
  DataType type_ = DataType::kFloat32;
};
using Elements = BasicElements<void>;
using ConstElements = BasicElements<const void>;

template <typename Void>
DataType type_of(const BasicElements<Void>& elements) {
  return elements.type();
}
template <Element T>
constexpr DataType type_of(T* /*first*/) {
  return DataTypeOf<std::remove_const_t<T>>::value;
}

}  // namespace simclr
