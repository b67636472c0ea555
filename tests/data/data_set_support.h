// What tests of readers of files share: a folder of their own, files with given bytes, the one line of a refusal.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "tests/base/temporary_folder.h"

namespace simclr::test {

inline void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  make_directories(file.parent_path());
  write_file_durably(file, bytes);
}

// The message of the Error(kData) that read() ends with.
template <typename Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kData);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "read without an error";
}

}  // namespace simclr::test
