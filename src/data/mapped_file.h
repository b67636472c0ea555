// A regular file mapped as read-only memory: its pages are those of the system's cache, shared by all ranks of a host.
// The file must not shrink while it is mapped; to replace it, rename a new file onto it. Reading a page that was cut
// off, or that the disk no longer returns, ends the process with the file's name and exit code 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace simclr {

class MappedFile {
 public:
  // Error(kData), ending with `advice`.
  MappedFile(const std::filesystem::path& path, std::string_view advice);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }  // bytes

 private:
  const uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace simclr
