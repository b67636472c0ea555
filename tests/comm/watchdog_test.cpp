// The watchdog and a communicator of GPUs: an asynchronous error ends the job, with the reason before the
// abort, and a communicator that is let go is left alone.
#include "src/comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "src/comm/single_process_collectives.h"
#include "tests/base/temporary_folder.h"

namespace simclr {
namespace {

using testing::HasSubstr;

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

class FailingCommunicator : public CommunicatorHealth {
 public:
  std::string error() noexcept override {
    ++questions;
    return failed ? "remote process exited or there was a network error" : "";
  }
  void abort() noexcept override { std::fprintf(stderr, "aborted\n"); }
  std::atomic<bool> failed = false;
  std::atomic<int> questions = 0;
};

struct Watched {
  explicit Watched(const std::filesystem::path& folder)
      : watchdog(heartbeat, make_shared_memory_board(alone),
                 {.timeout_s = 60, .run_folder = folder, .hosts = {"node7"}}) {
    heartbeat.beat(41, Phase::kTraining);
    watchdog.watch(communicator);
  }
  SingleProcessCollectives alone;
  Heartbeat heartbeat;
  Watchdog watchdog;
  std::shared_ptr<FailingCommunicator> communicator = std::make_shared<FailingCommunicator>();
};

TEST(WatchdogDeathTest, AFailedCommunicatorEndsTheJob) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  EXPECT_EXIT(
      {
        Watched job(folder.path());
        sleep_ms(50);
        job.communicator->failed = true;
        sleep_ms(20000);  // as in a collective that does not complete
      },
      testing::ExitedWithCode(4),
      testing::ContainsRegex("rank 0 .node7.: the communication between GPUs failed after step 41: remote process "
                             "exited or there was a network error;[^\n]*\naborted"));
}

TEST(WatchdogDeathTest, AFailedCommunicatorIsInStatusJson) {
  GTEST_FLAG_SET(death_test_style, "fast");  // the folder is this process's
  const TemporaryFolder folder;
  EXPECT_EXIT(
      {
        Watched job(folder.path());
        job.communicator->failed = true;
        sleep_ms(20000);
      },
      testing::ExitedWithCode(4), "");
  std::ostringstream status;
  status << std::ifstream(folder.path() / "status.json").rdbuf();
  EXPECT_THAT(status.str(), testing::AllOf(HasSubstr("\"failed\""), HasSubstr("failed after step 41")));
}

TEST(Watchdog, LeavesACommunicatorAloneThatIsClosed) {
  const TemporaryFolder folder;
  Watched job(folder.path());
  while (job.communicator->questions == 0) sleep_ms(5);
  job.watchdog.watch(nullptr);
  sleep_ms(300);  // a look that had begun
  job.communicator->failed = true;
  const int questions = job.communicator->questions;
  sleep_ms(600);
  EXPECT_EQ(job.communicator->questions, questions);
}

// A rank that was stopped in its start and continues, as when a launcher ends the job with SIGCONT before SIGTERM, does
// not accuse itself of the time in which it could do nothing.
TEST(StartDeadline, DoesNotCountTheTimeInWhichItsProcessWasStopped) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Heartbeat heartbeat;
    StartDeadline deadline(heartbeat, {.limit_s = 1, .host = "node7"});
    sleep_ms(100);  // its clock runs
    ::raise(SIGSTOP);
    sleep_ms(400);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  sleep_ms(1500);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(StartDeadlineDeathTest, EndsAStartThatTakesTooLong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Heartbeat heartbeat;
        StartDeadline deadline(heartbeat, {.limit_s = 0.3, .host = "node7"});
        sleep_ms(20000);
      },
      testing::ExitedWithCode(4), "rank 0 .node7. is not done starting after 0.3 s: it is at work itself");
}

}  // namespace
}  // namespace simclr
