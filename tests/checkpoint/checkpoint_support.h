// What tests of files share: whole-file reads and writes, a disk that is full, the text of an Error.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/common/error.h"
#include "tests/base/temporary_folder.h"

namespace simclr {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);  // a new file: closing a truncated one waits for the disk
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  ASSERT_TRUE(file) << path;
}

// While it lives, no file can grow beyond `bytes`: write() then fails with EFBIG, also for root.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    earlier_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &earlier_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = earlier_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &earlier_);
    std::signal(SIGXFSZ, earlier_handler_);
  }

 private:
  rlimit earlier_{};
  void (*earlier_handler_)(int) = nullptr;
};

// The text of the Error(code) that f throws; it must be one line.
template <typename F>
std::string error_text(F&& f, ExitCode code = ExitCode::kOutput) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace simclr
