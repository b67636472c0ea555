// One run at a time in a folder: who is refused, what it reads, and that nothing of a dead process stays.
#include "src/base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>

#include "src/base/file.h"
#include "tests/base/temporary_folder.h"

namespace simclr {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string refusal(const std::filesystem::path& folder) {
  try {
    const FolderLock second(folder, 0);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kOutput);
    return e.what();
  }
  return "";
}

TEST(FolderLock, TheSecondNamesTheOwner) {
  TemporaryFolder folder;
  const FolderLock first(folder.path());
  EXPECT_EQ(first.warning(), "");
  EXPECT_THAT(read_file(folder.path() / "lock", 1000),
              MatchesRegex("process [0-9]+ on .+, since 20[0-9-]+T[0-9:]+Z\n"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr(folder.path().string() + " is in use by another run (process " +
                                                std::to_string(::getpid()) + " on "));
}

TEST(FolderLock, IsFreeAgainAtTheEndOfItsHolder) {
  TemporaryFolder folder;
  { const FolderLock first(folder.path()); }
  EXPECT_EQ(refusal(folder.path()), "");
}

TEST(FolderLock, AKilledProcessLeavesNone) {
  TemporaryFolder folder;
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char got = 0;
  ASSERT_EQ(::read(ready[0], &got, 1), 1);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("process " + std::to_string(child) + " on "));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(refusal(folder.path()), "");
}

TEST(FolderLock, WaitsForAHolderThatIsAboutToEnd) {
  TemporaryFolder folder;
  auto first = std::make_unique<FolderLock>(folder.path());
  int beats = 0;
  const FolderLock second(folder.path(), 60, [&] {
    if (++beats == 3) first.reset();
  });
  EXPECT_EQ(beats, 3);
}

TEST(FolderLock, NamesThePathThatCannotBeOpened) {
  TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path() / "none"), HasSubstr("none/lock: No such file or directory"));
  std::filesystem::create_directory(folder.path() / "lock");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("lock: it is a folder; move it away"));
  std::filesystem::remove(folder.path() / "lock");
  std::filesystem::create_symlink("/dev/null", folder.path() / "lock");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("lock: it is a symbolic link; move it away"));
}

}  // namespace
}  // namespace simclr
