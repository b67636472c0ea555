#include "src/data/npy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "src/base/file.h"
#include "src/base/file_handle.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read from .npy files without conversion");

// Fills `to` with the file's bytes from `position` on. Error(kData) without the path.
void read_at(const FileHandle& file, int64_t position, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::pread(file.get(), to.data(), to.size(), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ExitCode::kData, "{}; check the disk", errno_text(errno));
    if (got == 0) fail(ExitCode::kData, "it was cut off while it was read; wait until it is written");
    position += got;
    to = to.subspan(got);
  }
}

template <typename T>
void check_finite(const NpyMatrix& matrix) {
  const int64_t columns = matrix.header.columns;
  for (int64_t row = 0; row < matrix.header.rows; ++row) {
    const std::byte* start = matrix.data.data() + row * columns * sizeof(T);
    for (int64_t column = 0; column < columns; ++column) {
      T number;
      std::memcpy(&number, start + column * sizeof(T), sizeof(T));
      if (!std::isfinite(number))
        fail(ExitCode::kData, "row {}, column {} (both from 0) is {}; save it from a step whose numbers are finite",
             row, column, number);
    }
  }
}

NpyMatrix read(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) fail(ExitCode::kData, "{}; check path and permissions", errno_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(ExitCode::kData, "{}; check the disk", errno_text(errno));
  if (S_ISDIR(status.st_mode)) fail(ExitCode::kData, "it is a folder; give the path of a .npy file");
  if (!S_ISREG(status.st_mode)) fail(ExitCode::kData, "it is not a regular file; save to a file first");
  const int64_t file_bytes = status.st_size;
  std::vector<std::byte> start(std::min(file_bytes, kMostNpyHeaderBytes));
  read_at(file, 0, start);
  NpyMatrix matrix{.header = parse_npy_header(start, file_bytes), .data = {}};
  matrix.data.resize(matrix.header.data_bytes());
  read_at(file, matrix.header.data_start, matrix.data);
  if (matrix.header.type == NpyType::kFloat32)
    check_finite<float>(matrix);
  else
    check_finite<double>(matrix);
  return matrix;
}

}  // namespace

double NpyMatrix::at(int64_t row, int64_t column) const {
  const std::byte* place = data.data() + (row * header.columns + column) * bytes_of(header.type);
  if (header.type == NpyType::kFloat32) {
    float number;
    std::memcpy(&number, place, sizeof number);
    return number;
  }
  double number;
  std::memcpy(&number, place, sizeof number);
  return number;
}

NpyMatrix read_npy(const std::filesystem::path& path) {
  try {
    return read(path);
  } catch (const Error& error) {
    fail(error.code(), "cannot read {}: {}", shown_path(path.string()), error.what());
  }
}

void write_npy(const std::filesystem::path& path, const NpyHeader& header, std::span<const std::byte> data) {
  SIMCLR_CHECK(std::ssize(data) == header.data_bytes(), "{} bytes for {}", data.size(), header.data_bytes());
  const std::string start = format_npy_header(header);
  DurableFile file(path);
  file.write(std::as_bytes(std::span(start)));
  file.write(data);
  file.commit();
}

}  // namespace simclr
