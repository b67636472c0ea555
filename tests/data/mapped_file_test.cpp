// A mapped file that shrinks while it is read ends the process with a line that names it, not with a bare signal.
#include "src/data/mapped_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/base/temporary_folder.h"

namespace simclr {
namespace {

constexpr int64_t kBytes = 1 << 20;

std::filesystem::path write_file(const TemporaryFolder& folder, const char* name) {
  const auto path = folder.path() / name;
  std::ofstream(path) << std::string(kBytes, 'x');
  return path;
}

int last_byte(const MappedFile& file) {
  return static_cast<const volatile uint8_t*>(file.data())[kBytes - 1];
}

TEST(MappedFileDeathTest, AFileThatIsCutOffIsNamed) {
  const TemporaryFolder folder;
  const MappedFile whole(write_file(folder, "whole.packed"), "");
  const auto path = write_file(folder, "cut.packed");
  const MappedFile cut(path, "");
  std::filesystem::resize_file(path, 4096);
  EXPECT_EQ(last_byte(whole), 'x');
  EXPECT_EXIT(std::exit(last_byte(cut)), testing::ExitedWithCode(3),
              "can no longer read [^ ]*/cut.packed: it was cut off while the run used it");
}

TEST(MappedFileDeathTest, OtherBusErrorsStayWhatTheyAre) {
  const TemporaryFolder folder;
  const auto path = write_file(folder, "closed.packed");
  { const MappedFile closed(path, ""); }
  EXPECT_EXIT(
      {
        ::raise(SIGBUS);
        ::raise(SIGBUS);  // the first one put the system's action back
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace simclr
