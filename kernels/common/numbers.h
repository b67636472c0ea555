// Conversions of numbers by name, where a static_cast would be longer than what it says. Integers to each other convert
// implicitly where no value is lost, std::ssize() gives the length of a container as int64_t. constexpr, so that nvcc
// compiles them for the GPU too; always_inline, so that a function compiled per instruction set may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace simclr {

// Of a count or a float32; exact below 2^53.
template <typename T>
[[gnu::always_inline]] constexpr double as_double(T value) {
  static_assert(std::is_arithmetic_v<T>);
  return static_cast<double>(value);
}

// Rounded to float32: settings are read in double, kernels take float32. Of a count: exact below 2^24.
template <typename T>
[[gnu::always_inline]] constexpr float to_float(T value) {
  static_assert(std::is_arithmetic_v<T>);
  return static_cast<float>(value);
}

// A small non-negative count as what a library or a launch takes; the caller knows that it fits.
[[gnu::always_inline]] constexpr int to_int(int64_t value) {
  return static_cast<int>(value);
}

// The memory of `count` elements, 0 or more.
template <typename T>
constexpr size_t bytes_of(int64_t count) {
  return static_cast<size_t>(count) * sizeof(T);
}

}  // namespace simclr
