// Helpers of the configuration's tests: load a text, get the message of a refusal, write a file that cleans itself up.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/error.h"
#include "src/config/loader.h"

namespace simclr {

inline Settings load(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return settings_from_string(text, "c.yaml", overrides);
}

// The message of the Error(kUsage) that action() throws; a failure and "" if it throws nothing or another code.
template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

inline std::string load_refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  SCOPED_TRACE(text);
  return refusal([&] { load(text, overrides); });
}

// A folder of its own under the system's temporary one.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "simclr_config_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a destructor does not throw; what is left is in the temporary folder
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace simclr
