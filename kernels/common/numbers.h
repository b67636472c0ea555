// Conversions of numbers by name, where a static_cast would be longer than what it says. Integers to each other convert
// implicitly where no value is lost.
#pragma once

#include <type_traits>

namespace simclr {

// Of a count or a float32; exact below 2^53.
template <typename T>
constexpr double as_double(T value) {
  static_assert(std::is_arithmetic_v<T>);
  return static_cast<double>(value);
}

// Rounded to float32: settings are read in double, kernels take float32.
constexpr float to_float(double value) {
  return static_cast<float>(value);
}

}  // namespace simclr
