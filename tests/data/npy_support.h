// .npy files as bytes, made by hand for the tests: what numpy.save writes, and what it never would.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "src/data/npy_file.h"

namespace simclr::test {

inline std::string npy_text(std::string_view descr, std::string_view fortran_order, std::string_view shape) {
  return "{'descr': " + std::string(descr) + ", 'fortran_order': " + std::string(fortran_order) +
         ", 'shape': " + std::string(shape) + ", }";
}

// Magic, version, length and text, filled up with spaces as numpy does.
inline std::string npy_start(std::string text, char major = 1, char minor = 0) {
  const size_t before = major == 1 ? 10 : 12;
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string out = "\x93NUMPY";
  out += {major, minor};
  for (size_t k = 0, length = text.size(); k < before - 8; ++k, length /= 256) out += static_cast<char>(length % 256);
  return out + text;
}

template <typename T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// A whole file; shape "(3, 2)".
template <typename T>
std::string npy_bytes(const std::vector<T>& numbers, const std::string& shape) {
  return npy_start(npy_text(sizeof(T) == 4 ? "'<f4'" : "'<f8'", "False", shape)) + bytes_of(numbers);
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A matrix in memory, as if it had been read.
template <typename T>
NpyMatrix npy_matrix(const std::vector<T>& numbers, int64_t columns) {
  NpyMatrix out{.header = {.type = sizeof(T) == 4 ? NpyType::kFloat32 : NpyType::kFloat64,
                           .rows = static_cast<int64_t>(numbers.size()) / columns,
                           .columns = columns},
                .data = std::vector<std::byte>(numbers.size() * sizeof(T))};
  std::memcpy(out.data.data(), numbers.data(), out.data.size());
  return out;
}

}  // namespace simclr::test
