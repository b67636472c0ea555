// .npy files: read whole with every number checked, and written so that the file is there complete or not at all.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "src/data/npy_header.h"

namespace simclr {

// A matrix as it stands in its file.
struct NpyMatrix {
  NpyHeader header;
  std::vector<std::byte> data;  // [rows, columns] of header.type

  double at(int64_t row, int64_t column) const;
};

// Takes memory only after the header has been found to fit the size of the file. Throws Error(kData), one line with the
// path, for what cannot be read, is no matrix of finite float32 or float64 numbers, or is no regular file.
NpyMatrix read_npy(const std::filesystem::path& path);

// Durable on return (base/file.h). Error(kOutput) with the path.
void write_npy(const std::filesystem::path& path, const NpyHeader& header, std::span<const std::byte> data);

}  // namespace simclr
