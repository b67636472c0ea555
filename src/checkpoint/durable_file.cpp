// The POSIX calls of DurableFile, in the order that keeps the earlier file until the new one is complete.
#include "src/checkpoint/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/common/error.h"

namespace simclr {

bool write_fully(int file, const void* data, size_t bytes) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // Linux writes at most 0x7ffff000 bytes in one call
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file, next, std::min(bytes, kMostAtOnce));
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

DurableFile::DurableFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_) {
  temporary_ += kTemporarySuffix;
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    fail(ExitCode::kOutput, "cannot write {}: it is no regular file; choose another path", path_.string());
  }
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  folder_ = FileHandle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.is_open()) fail_with_errno("open the folder");
  // A file that an ended process left behind goes; O_EXCL then never writes through a link.
  if (::unlink(temporary_.c_str()) != 0 && errno != ENOENT) fail_with_errno("remove an old temporary file");
  file_ = FileHandle(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_.is_open()) fail_with_errno("make the temporary file");
  temporary_exists_ = true;
}

void DurableFile::write(const void* data, size_t bytes) {
  if (!write_fully(file_.get(), data, bytes)) fail_with_errno("write");
}

void DurableFile::commit() {
  if (::fsync(file_.get()) != 0) fail_with_errno("flush");
  if (!file_.close()) fail_with_errno("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("rename");
  temporary_exists_ = false;
  if (::fsync(folder_.get()) != 0) fail_with_errno("flush the folder");
}

void DurableFile::remove_temporary() noexcept {
  if (std::exchange(temporary_exists_, false)) ::unlink(temporary_.c_str());
}

// Cleans up at once: after a full disk the space is free again when the error is reported.
void DurableFile::fail_with_errno(const char* step) {
  const std::string reason = std::strerror(errno);
  file_.close();
  remove_temporary();
  fail(ExitCode::kOutput, "cannot write {}: {}: {}; check the path and the free space", path_.string(), step, reason);
}

}  // namespace simclr
