// A file is there as a whole or not at all: errors planted at each step that a test can make fail.
#include "src/checkpoint/durable_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/checkpoint/test_files.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

void write_durably(const fs::path& path, const std::string& bytes) {
  DurableFile file(path);
  file.write(bytes);
  file.commit();
}

TEST(DurableFile, ReplacesAnEarlierFile) {
  TestFolder folder;
  write_durably(folder / "a", "first, longer");
  write_durably(folder / "a", "second");
  EXPECT_EQ(read_file(folder / "a"), "second");
  EXPECT_FALSE(fs::exists(folder / "a.tmp"));
}

TEST(DurableFile, IsNotThereBeforeCommit) {
  TestFolder folder;
  {
    DurableFile file(folder / "a");
    file.write("half");
    EXPECT_FALSE(fs::exists(folder / "a"));
    EXPECT_TRUE(fs::exists(folder / "a.tmp"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path())) << "a writer that gives up leaves nothing";
}

TEST(DurableFile, AFullDiskLeavesTheEarlierFileAndNoRest) {
  TestFolder folder;
  write_durably(folder / "a", "good");
  for (rlim_t limit : {0, 1, 4096, 99999}) {
    const FileSizeLimit full(limit);
    const std::string text = error_text([&] { write_durably(folder / "a", std::string(100000, 'x')); });
    EXPECT_THAT(text, HasSubstr((folder / "a").string() + ": write: File too large")) << limit;
    EXPECT_EQ(read_file(folder / "a"), "good") << limit;
    EXPECT_FALSE(fs::exists(folder / "a.tmp")) << limit;
  }
}

TEST(DurableFile, WritesThroughShortWrites) {
  // A pipe that is drained slowly takes less than it is given.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t reader = fork();
  if (reader == 0) {
    close(ends[1]);
    char piece[1000];
    long total = 0;
    for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;) total += got;
    _exit(total == 1000000 ? 0 : 1);
  }
  EXPECT_TRUE(write_fully(ends[1], std::string(1000000, 'x').data(), 1000000));
  close(ends[0]);
  close(ends[1]);
  int status = -1;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(DurableFile, AFullDeviceIsSeen) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_FALSE(write_fully(full, "x", 1));
  EXPECT_EQ(errno, ENOSPC);
  close(full);
}

TEST(DurableFile, RefusesPathsThatCannotBeAFile) {
  TestFolder folder;
  write_file(folder / "plain", "x");
  fs::create_directory(folder / "sub");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { write_durably(folder / "plain/a", "x"); }),
              HasSubstr("open the folder: Not a directory"));
  EXPECT_THAT(error_text([&] { write_durably(folder / "none/a", "x"); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(error_text([&] { write_durably(folder / "sub", "x"); }), HasSubstr("no regular file"));
  EXPECT_THAT(error_text([&] { write_durably(folder / "pipe", "x"); }), HasSubstr("no regular file"));
  EXPECT_THAT(error_text([&] { write_durably("/dev/full", "x"); }), HasSubstr("no regular file"));
  EXPECT_THAT(error_text([&] { write_durably(folder / std::string(300, 'n'), "x"); }), HasSubstr("File name too long"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 3) << "nothing was left behind";
}

TEST(DurableFile, AReadOnlyFolderIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes into read-only folders";
  TestFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const std::string text = error_text([&] { write_durably(folder / "a", "x"); });
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_THAT(text, HasSubstr("make the temporary file: Permission denied"));
}

TEST(DurableFile, NeverWritesThroughALinkLeftAsTemporary) {
  TestFolder folder;
  write_file(folder / "victim", "mine");
  fs::create_symlink(folder / "victim", folder / "a.tmp");
  write_durably(folder / "a", "x");
  EXPECT_EQ(read_file(folder / "victim"), "mine");
  EXPECT_EQ(read_file(folder / "a"), "x");
  EXPECT_FALSE(fs::is_symlink(folder / "a"));
}

}  // namespace
}  // namespace simclr
