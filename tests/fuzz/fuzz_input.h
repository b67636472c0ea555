// Shared by all fuzz targets: foreign bytes as a file, and the only way in which a parser may refuse them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/common/error.h"
#include "src/base/file.h"

namespace simclr::test {

// A file that exists in memory only.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || write_all(fd_, data, bytes) != 0) std::abort();
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// A refusal is an Error of this code with a text; of one line, unless several faults are reported together.
// Anything else that comes out of parse() ends the process.
template <typename Parse>
void expect_parsed_or_refused(ExitCode code, bool several_lines, Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    const bool one_line = std::strchr(error.what(), '\n') == nullptr;
    if (error.code() != code || error.what()[0] == '\0' || (!several_lines && !one_line)) std::abort();
  }
}

}  // namespace simclr::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);
