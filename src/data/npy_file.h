// Reads .npy files whole, checking every number, and writes them durably: a file appears complete or not at all.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "src/data/npy_header.h"

namespace simclr {

// A matrix in the number format of its file.
struct NpyMatrix {
  NpyHeader header;
  std::vector<std::byte> data;  // [rows, columns] of header.type

  double at(int64_t row, int64_t column) const;
};

// Allocates only after the header was found to match the file's size. Throws Error(kData) with the path unless it is a
// regular, readable file that holds a matrix of finite float32 or float64 numbers.
NpyMatrix read_npy(const std::filesystem::path& path);

// Durable on return (base/file.h). Error(kOutput) with the path.
void write_npy(const std::filesystem::path& path, const NpyHeader& header, std::span<const std::byte> data);

}  // namespace simclr
