// Files written so that a crash leaves the old content or the new, never a part; files read with a bound.
// Every failure is an Error that names the path and the system's reason. Not for streams or formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/error.h"
#include "src/base/file_handle.h"

namespace simclr {

// Collects bytes in PATH.tmp-PID-RANDOM next to the file; commit() makes them the file. Without commit() nothing is
// left. The temporary is always a new file (O_EXCL): two writers of one path never share it, and no link is followed.
class DurableFile {
 public:
  // Error(kOutput); also for a path that is there and no regular file, such as a device.
  explicit DurableFile(std::filesystem::path path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);  // Error(kOutput), e.g. disk full
  // fsync, rename onto the path, fsync of the folder: on return the new content survives a power cut.
  void commit();

 private:
  [[noreturn]] void fail_to(const char* what, int error_number) const;

  std::filesystem::path path_, temporary_;
  int fd_ = -1;
};

void write_file_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_durably(const std::filesystem::path& path, std::string_view text);

// A file of the program's own that is written in place (a log, a lock). Opened or created, with `flags` of open(2) added.
// Error(kOutput) for a symbolic link, pipe, device or folder in its place: another user may have planted it. Links
// among the folders above it are followed.
FileHandle open_in_place(const std::filesystem::path& path, int flags);

// Removes the temporary files that killed processes left next to PATH, which no one is writing; returns their names.
// Error(kOutput).
std::vector<std::string> remove_temporaries_of(const std::filesystem::path& path);

// The whole file. Error(code) when it cannot be read, is a folder, or has more than max_bytes.
std::string read_file(const std::filesystem::path& path, int64_t max_bytes, ExitCode code = ExitCode::kOutput);

// Makes the folder and those above it; it is then writable. Error(kOutput) with path and reason.
void make_directories(const std::filesystem::path& path);

// write(2) until all is written; 0 or the errno. Safe in any thread, takes no lock and no memory.
int write_all(int fd, const void* data, size_t bytes) noexcept;

// The system's text for an errno, the same in every thread.
std::string errno_text(int error_number);

}  // namespace simclr
