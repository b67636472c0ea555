// Who says what where, that a failed write surfaces, and the progress line's arithmetic.
#include "src/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "src/base/console.h"
#include "src/base/file.h"
#include "src/base/progress_line.h"
#include "tests/base/temporary_folder.h"

namespace simclr {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// A file in place of a stream of the console.
class Captured {
 public:
  Captured(const TemporaryFolder& folder, const char* name)
      : path_(folder.path() / name), fd_(::open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600)) {}
  ~Captured() { ::close(fd_); }
  int fd() const { return fd_; }
  std::string text() const { return read_file(path_, 1 << 20); }

 private:
  std::filesystem::path path_;
  int fd_;
};

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { start_log({}); }  // the other tests print to the real console

  void start(int rank, int ranks) {
    start_log({.rank = rank, .ranks = ranks, .host = "n1", .out_fd = out_.fd(), .error_fd = error_.fd()});
  }
  std::string log_file() const { return read_file(folder_.path() / "train.log", 1 << 20); }

  TemporaryFolder folder_;
  Captured out_{folder_, "out"}, error_{folder_, "error"};
};

TEST_F(LogTest, RankZeroSaysEverythingInItsPlace) {
  start(0, 2);
  log_info("before the {}", "file");
  write_file_durably(folder_.path() / "train.log", "an earlier run\n");
  open_log_file(folder_.path());
  log_info("ready with 100%");
  log_warning("slow");
  log_error("broken\nin two lines");
  log_message(LogLevel::kProgress, "step 3");
  flush_log();
  EXPECT_EQ(out_.text(), "before the file\nready with 100%\nstep 3\n");
  EXPECT_EQ(error_.text(), "warning: slow\nerror: broken in two lines\n");
  EXPECT_THAT(log_file(), testing::StartsWith("an earlier run\n2"));
  EXPECT_THAT(log_file(), HasSubstr(" info: ready with 100%\n"));
  EXPECT_THAT(log_file(), HasSubstr(" warning: slow\n"));
  EXPECT_THAT(log_file(), HasSubstr(": step 3\n"));
}

TEST_F(LogTest, AQuietConsoleHasWarningsErrorsAndTheEnd) {
  start(0, 1);
  open_log_file(folder_.path());
  make_console_quiet();
  log_info("usual");
  log_message(LogLevel::kProgress, "step 3");
  log_warning("slow");
  log_final("finished");
  log_error("broken");
  EXPECT_EQ(out_.text(), "finished\n");
  EXPECT_EQ(error_.text(), "warning: slow\nerror: broken\n");
  EXPECT_THAT(log_file(), HasSubstr(" info: usual\n"));
  EXPECT_THAT(log_file(), HasSubstr(" info: finished\n"));
  start(0, 1);
  log_final("said once");
  EXPECT_THAT(out_.text(), EndsWith("finished\nsaid once\n"));
}

TEST_F(LogTest, ColorsAreForTerminals) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal) + ::unlockpt(terminal), 0);
  const int inside = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  const auto said = [&](const char* no_color) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("NO_COLOR", no_color, 1);
    start_log({.out_fd = out_.fd(), .error_fd = inside});
    log_warning("slow");
    char text[200] = {};
    EXPECT_GT(::read(terminal, text, sizeof text - 1), 0);
    return std::string(text);
  };
  EXPECT_EQ(said(""), "\x1b[1;33mwarning:\x1b[0m slow\r\n");
  EXPECT_EQ(said("1"), "warning: slow\r\n");
  ::unsetenv("NO_COLOR");
  ::close(inside);
  ::close(terminal);
}

TEST_F(LogTest, OtherRanksSayErrorsWithTheirName) {
  start(1, 2);
  open_log_file(folder_.path());
  log_info("not printed");
  log_warning("nor this");
  log_error("broken");
  flush_log();
  EXPECT_EQ(out_.text(), "");
  EXPECT_EQ(error_.text(), "error: rank 1 (n1): broken\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "train.log"));
}

TEST_F(LogTest, AFailedWriteSurfacesAtTheNextFlush) {
  start(0, 1);
  open_log_file(folder_.path());
  flush_log();
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  log_info("lost");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old_handler);
  try {
    flush_log();
    FAIL() << "the failed write was swallowed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kOutput);
    EXPECT_THAT(e.what(), HasSubstr("train.log: File too large"));
  }
}

// Another user may have planted it in a folder that both can write: its target would be appended to.
TEST_F(LogTest, ASymbolicLinkOrAPipeInItsPlaceIsRefused) {
  start(0, 1);
  const auto target = folder_.path() / "target", log = folder_.path() / "train.log";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, log);
  EXPECT_THROW(open_log_file(folder_.path()), Error);
  log_last_words("of a watchdog");
  EXPECT_EQ(std::filesystem::file_size(target), 8u);
  std::filesystem::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  EXPECT_THROW(open_log_file(folder_.path()), Error) << "and does not wait for a reader";
}

TEST_F(LogTest, AFullConsoleSurfacesAndAClosedOneDoesNot) {
  const int full = ::open("/dev/full", O_WRONLY);
  start_log({.out_fd = full, .error_fd = error_.fd()});
  log_info("lost");
  EXPECT_THROW(flush_log(), Error);
  ::close(full);

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  start_log({.out_fd = ends[1], .error_fd = error_.fd()});
  log_info("to a closed reader");
  EXPECT_NO_THROW(flush_log());
  ::signal(SIGPIPE, old_handler);
  ::close(ends[1]);
}

TEST_F(LogTest, LastWordsReachConsoleAndFileFromAnyRank) {
  start(1, 2);
  open_log_file(folder_.path());
  log_last_words("rank 0 (n1) has stopped");
  EXPECT_EQ(error_.text(), "error: rank 0 (n1) has stopped\n");
  EXPECT_THAT(log_file(), EndsWith(" error: rank 0 (n1) has stopped\n"));
  log_last_words(std::string(100000, 'x'));  // cut, not overrun
  EXPECT_LT(error_.text().size(), 2100u);
}

TEST_F(LogTest, AnUnusableLogFileIsNamed) {
  start(0, 1);
  try {
    open_log_file(folder_.path() / "none");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("none/train.log: No such file"));
  }
}

TEST(Console, RewritesOnATerminalOnly) {
  TemporaryFolder folder;
  Captured out(folder, "out"), plain(folder, "plain"), error(folder, "error");
  Console terminal(out.fd(), error.fd(), true), pipe(plain.fd(), error.fd(), false);
  terminal.rewrite("step 1");
  terminal.rewrite("step 2");
  terminal.print(Stream::kOut, "a message");
  terminal.clear();
  terminal.clear();
  EXPECT_EQ(out.text(), "\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[Ka message\nstep 2\r\x1b[K");
  terminal.rewrite(std::string(500, 'x'));
  EXPECT_LT(out.text().size(), 200u) << "longer than the terminal is wide";
  pipe.rewrite("step 1");
  pipe.print(Stream::kOut, "a message");
  EXPECT_EQ(plain.text(), "a message\n");
}

TEST(Console, KeepsTheLastLineAboveWhatEndsARun) {
  TemporaryFolder folder;
  Captured out(folder, "out"), error(folder, "error");
  Console terminal(out.fd(), error.fd(), true);
  terminal.rewrite("step 80/80");
  terminal.keep();
  terminal.keep();
  terminal.print(Stream::kOut, "finished");
  EXPECT_EQ(out.text(), "\r\x1b[Kstep 80/80\nfinished\n");
}

TEST(ProgressLine, FormatsDurations) {
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(86400 + 3723), "1 day 01:02:03");
  EXPECT_EQ(format_duration(2 * 86400), "2 days 00:00:00");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(NAN), "?");
}

TEST(ProgressLine, KnowsTheTimeLeft) {
  double now = 100;
  ProgressLine line(10, 110, [&] { return now; });
  EXPECT_EQ(line.format(10, "loss 5"), "step 10/110  loss 5  elapsed 0:00  left ?");
  now = 150;  // 25 of 100 steps in 50 s
  EXPECT_EQ(line.format(35, "loss 4"), "step 35/110  loss 4  elapsed 0:50  left 2:30");
}

}  // namespace
}  // namespace simclr
