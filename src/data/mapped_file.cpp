#include "src/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/config/faults.h"

namespace simclr {

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view advice) {
  const auto refuse = [&](const std::string& why) {
    fail(ExitCode::kData, "cannot read {}: {}; {}", shown_path(path.string()), why, advice);
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer does not block
  if (fd < 0) refuse(errno_text(errno));
  struct stat info {};
  const int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  const bool regular = error == 0 && S_ISREG(info.st_mode);
  void* memory = nullptr;
  int map_error = 0;
  if (regular && info.st_size > 0) {
    memory = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) map_error = errno;
  }
  ::close(fd);
  if (error != 0 || map_error != 0) refuse(errno_text(error != 0 ? error : map_error));
  if (!regular) refuse("it is no regular file");
  data_ = static_cast<const uint8_t*>(memory);
  size_ = info.st_size;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), static_cast<size_t>(size_));
}

}  // namespace simclr
