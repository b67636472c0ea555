// A file that is there as a whole or not at all, whatever happens on the way: written beside its place under a
// temporary name, flushed to the disk, renamed, and the folder flushed. Streams, so files of any size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "src/checkpoint/file_handle.h"

namespace simclr {

// Every failing step throws Error(kOutput) with the path and the system's reason; until commit() has renamed, an
// earlier file of that name is untouched, and the temporary file is removed.
class DurableFile {
 public:
  static constexpr std::string_view kTemporarySuffix = ".tmp";  // of the whole file name

  // Refuses a path that exists and is no regular file (a device, a folder). One writer per path at a time.
  explicit DurableFile(std::filesystem::path path);
  ~DurableFile() { remove_temporary(); }  // nothing is left without commit()
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }

  // On return the file is durable under its name. When only the last step, flushing the folder, fails, the new file
  // has already taken the place of the earlier one.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* step);
  void remove_temporary() noexcept;

  std::filesystem::path path_, temporary_;
  FileHandle file_, folder_;
  bool temporary_exists_ = false;
};

// Writes all bytes to a file descriptor, through interruptions and short writes. false: errno says why.
bool write_fully(int file, const void* data, size_t bytes);

}  // namespace simclr
