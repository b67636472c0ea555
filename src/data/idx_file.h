// An idx file of bytes (http://yann.lecun.com/exdb/mnist/, "the IDX file format"), plain or gzip: two zero bytes,
// 0x08, the number of dimensions, each of them as 32 bits (big-endian), then the values. Other value types are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/beat.h"

struct gzFile_s;

namespace simclr {

class IdxFile {
 public:
  // Opens a regular file and reads its header, which must have `dimensions` dimensions. Error(kData), ending with
  // `advice`; also for sizes that the file cannot hold even at gzip's highest compression ratio.
  IdxFile(std::filesystem::path path, size_t dimensions, std::string_view advice);

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::filesystem::path& path() const { return path_; }

  // Reads all values; call it once. Error(kData) for fewer or more values than the header states, or a wrong checksum.
  std::vector<uint8_t> read(const Beat& beat);

 private:
  struct Close {
    void operator()(gzFile_s* file) const noexcept;
  };
  size_t read_some(void* data, size_t bytes);
  [[noreturn]] void refuse(std::string_view what) const;

  std::filesystem::path path_;
  std::string advice_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::vector<int64_t> shape_;
};

}  // namespace simclr
