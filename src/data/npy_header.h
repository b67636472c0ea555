// The header of a .npy file (NumPy Enhancement Proposal 1; versions 1.0, 2.0 and 3.0), for matrices of float32 or
// float64. Works on bytes; files: npy_file.h. Every refusal names the NumPy call that gives an accepted file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace simclr {

enum class NpyType { kFloat32, kFloat64 };

constexpr int64_t bytes_of(NpyType type) {
  return type == NpyType::kFloat32 ? 4 : 8;
}
std::string_view name_of(NpyType type);  // "float32"

// A matrix [rows, columns], row-major, little-endian, from byte data_start to the end of the file.
struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t data_start = 0;

  int64_t data_bytes() const { return rows * columns * bytes_of(type); }
};

// Upper limit of a header with magic, version and length; NumPy itself refuses texts of more than 10,000 bytes.
inline constexpr int64_t kMostNpyHeaderBytes = 1 << 16;

// `start`: the first bytes of a file of file_bytes bytes, at least kMostNpyHeaderBytes of them or all; untrusted.
// The header returned is valid and matches the file's size; rows and columns are 1 or more. Throws Error(kData) without
// the path: "cut off: ...".
NpyHeader parse_npy_header(std::span<const std::byte> start, int64_t file_bytes);

// The header as numpy.save writes it, version 1.0: a multiple of 64 bytes. data_start is ignored.
std::string format_npy_header(const NpyHeader& header);
// The same for any array: descr "<i8", shape "(5000,)".
std::string format_npy_header(std::string_view descr, std::string_view shape);

}  // namespace simclr
