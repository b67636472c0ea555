// A data set of several files of which one is foreign: the first byte of an input selects the file, the rest is its
// content.
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/temporary_folder.h"
#include "tests/fuzz/fuzz_input.h"

namespace simclr::test {

class FileSet {
 public:
  // Names and good contents.
  explicit FileSet(std::vector<std::pair<std::string, std::string>> files) : files_(std::move(files)) {
    for (const auto& [name, good] : files_) write(name, good.data(), good.size());
  }

  // read(folder) with the foreign file in place; it parses or refuses with kData.
  template <typename Read>
  void with(const uint8_t* data, size_t bytes, Read&& read) {
    if (bytes == 0) return;
    const auto& [name, good] = files_[data[0] % files_.size()];
    write(name, data + 1, bytes - 1);
    expect_parsed_or_refused(ExitCode::kData, false, [&] { read(folder_.path().string()); });
    write(name, good.data(), good.size());
  }

 private:
  void write(const std::string& name, const void* data, size_t bytes) {
    const int fd = ::open((folder_.path() / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, data, bytes) != 0) std::abort();
    ::close(fd);
  }

  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace simclr::test
