// Heartbeats: the verdicts of the detector with a clock that the test turns, and both boards with real memory and
// files.
#include "src/comm/heartbeat.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kernels/common/error.h"
#include "src/comm/stall_detector.h"
#include "tests/base/temporary_folder.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Three ranks, one look per second, time limit 5 s. A story changes the pulses before each look.
class Story {
 public:
  using Change = std::function<void(int second, std::vector<Pulse>&)>;

  // The second of the first verdict, -1 for none within `seconds`.
  int play(int seconds, const Change& change) {
    StallDetector detector(3, 5.0, 1.0, 100.0);
    std::vector<Pulse> pulses(3);
    for (int second = 1; second <= seconds; ++second) {
      change(second, pulses);
      now_s_ += 1.0;
      if ((verdict = detector.look(pulses, now_s_))) return second;
    }
    return -1;
  }
  void skip(double seconds) { now_s_ += seconds; }

  std::optional<Verdict> verdict;

 private:
  double now_s_ = 100.0;
};

void live(Pulse& p) {
  ++p.alive;
}
void work(Pulse& p) {
  ++p.alive;
  ++p.progress;
  ++p.step;
}
void wait(Pulse& p) {
  ++p.alive;
  p.waiting = true;
}

TEST(StallDetector, LeavesWorkingRanksAlone) {
  Story story;
  EXPECT_EQ(story.play(100,
                       [](int, auto& p) {
                         for (Pulse& pulse : p) work(pulse);
                       }),
            -1);
}

TEST(StallDetector, FindsTheDeadProcessNotThoseThatWaitForIt) {
  Story story;
  const int second = story.play(100, [](int t, auto& p) {
    if (t <= 10) {
      for (Pulse& pulse : p) work(pulse);
    } else {
      wait(p[0]);
      wait(p[2]);
    }
  });
  EXPECT_EQ(second, 16);  // last sign at 10, more than 5 s later
  EXPECT_EQ(story.verdict->kind, Verdict::Kind::kDead);
  EXPECT_EQ(story.verdict->rank, 1);
  EXPECT_EQ(story.verdict->last.step, 10);
  const std::vector<std::string> hosts = {"a", "b", "c"};
  EXPECT_THAT(describe(*story.verdict, hosts, 5.0, "train.timeout_s"),
              AllOf(HasSubstr("rank 1 (b) has given no sign of life for 6.0 s (train.timeout_s: 5)"),
                    HasSubstr("last seen at step 10 (starting) while the run was at step 10")));
  EXPECT_EQ(
      describe(*story.verdict, hosts, 5.0, ""),
      "rank 1 (b) has given no sign of life for 6.0 s (the limit, in seconds: 5): its process is stopped or gone, "
      "or its host is; look there, then start again")
      << "of a command that has no such key, no steps and no checkpoints";
}

TEST(StallDetector, ADeadRankInsideACollectiveIsStillDead) {
  Story story;
  EXPECT_EQ(story.play(100,
                       [](int, auto& p) {
                         p[1].waiting = true;
                         wait(p[0]);
                         wait(p[2]);
                       }),
            6);
  EXPECT_EQ(story.verdict->rank, 1);
  EXPECT_EQ(story.verdict->kind, Verdict::Kind::kDead);
}

TEST(StallDetector, FindsTheStalledRank) {
  Story story;
  const int second = story.play(100, [](int t, auto& p) {
    t <= 3 ? work(p[2]) : live(p[2]);
    wait(p[0]);
    wait(p[1]);
  });
  EXPECT_EQ(second, 9);
  EXPECT_EQ(story.verdict->kind, Verdict::Kind::kStalled);
  EXPECT_EQ(story.verdict->rank, 2);
}

TEST(StallDetector, AProcessThatWasStoppedWithinAStepIsDeadNotStalled) {
  Story story;
  const int second = story.play(100, [](int t, auto& p) {
    if (t <= 3) {
      work(p[2]);
    } else if (t <= 5) {
      live(p[2]);  // in the middle of a step, then stopped
    }
    wait(p[0]);
    wait(p[1]);
  });
  EXPECT_EQ(second, 11);  // last progress at 3, last sign of life at 5
  EXPECT_EQ(story.verdict->kind, Verdict::Kind::kDead);
  EXPECT_EQ(story.verdict->rank, 2);
}

TEST(StallDetector, LongWorkThatBeatsIsFine) {
  Story story;
  EXPECT_EQ(story.play(100,
                       [](int t, auto& p) {
                         live(p[1]);
                         if (t % 4 == 0) ++p[1].progress;
                         wait(p[0]);
                         wait(p[2]);
                       }),
            -1);
}

TEST(StallDetector, WhoComesOutOfALongWaitHasAllItsTime) {
  Story story;
  EXPECT_EQ(story.play(13,
                       [](int t, auto& p) {
                         // Ranks 0 and 2 wait 9 s for rank 1, which beats; then all work on for 4 s without a beat.
                         for (Pulse& pulse : p) live(pulse);
                         if (t < 9) ++p[1].progress;
                         p[0].waiting = p[2].waiting = t < 9;
                       }),
            -1);
}

TEST(StallDetector, AllWaitingIsNobodysFaultButTheEnd) {
  Story story;
  EXPECT_EQ(story.play(100,
                       [](int, auto& p) {
                         for (Pulse& pulse : p) wait(pulse);
                         p[0].step = p[1].step = 8;
                         p[2].step = 7;
                       }),
            7);  // the entry into the collective, seen at second 1, was the last progress
  EXPECT_EQ(story.verdict->kind, Verdict::Kind::kAllWaiting);
  EXPECT_EQ(story.verdict->rank, 2);
}

TEST(StallDetector, RanksThatLeftAreNotWatched) {
  Story story;
  EXPECT_EQ(story.play(50,
                       [](int t, auto& p) {
                         if (t > 3) p[0].left = p[1].left = p[2].left = true;
                       }),
            -1);
  // The others have left, the last one waits forever.
  EXPECT_EQ(story.play(50,
                       [](int, auto& p) {
                         p[0].left = p[1].left = true;
                         wait(p[2]);
                       }),
            7);
  EXPECT_EQ(story.verdict->rank, 2);
}

TEST(StallDetector, ItsOwnStandstillIsNotHeldAgainstOthers) {
  Story story;
  EXPECT_EQ(story.play(20,
                       [&](int t, auto& p) {
                         if (t == 10)
                           story.skip(3600);  // this process was stopped for an hour; the others have continued
                         for (Pulse& pulse : p) t == 10 ? void() : work(pulse);
                       }),
            -1);
}

TEST(StallDetector, CountsFurtherCulprits) {
  Story story;
  story.play(100, [](int, auto& p) { wait(p[0]); });
  EXPECT_EQ(story.verdict->rank, 1);
  EXPECT_EQ(story.verdict->more, 1);
  EXPECT_THAT(describe(*story.verdict, std::vector<std::string>{"a", "b", "c"}, 5.0, "train.timeout_s"),
              HasSubstr("rank 1 (b) and 1 more"));
}

TEST(Heartbeat, EntersAndLeavesCollectives) {
  Heartbeat heartbeat;
  heartbeat.beat(12, Phase::kSaving);
  EXPECT_EQ(heartbeat.read().step, 12);
  EXPECT_EQ(heartbeat.read().phase, Phase::kSaving);
  EXPECT_FALSE(heartbeat.read().waiting);
  const uint64_t before = heartbeat.read().progress;
  {
    const InsideCollective inside(&heartbeat);
    EXPECT_TRUE(heartbeat.read().waiting);
    EXPECT_GT(heartbeat.read().progress, before);
  }
  EXPECT_FALSE(heartbeat.read().waiting);
  EXPECT_GT(heartbeat.read().progress, before + 1);
}

TEST(Heartbeat, StartsUntilTheFirstStep) {
  Heartbeat heartbeat;
  heartbeat.beat(7, Phase::kStarting);
  heartbeat.beat(7, Phase::kEvaluating);
  EXPECT_TRUE(heartbeat.is_starting());
  heartbeat.beat(7, Phase::kTraining);
  EXPECT_FALSE(heartbeat.is_starting());
  heartbeat.beat(8, Phase::kEvaluating);
  EXPECT_FALSE(heartbeat.is_starting());
}

std::set<std::string> shared_memory_names() {
  std::set<std::string> names;
  DIR* folder = ::opendir("/dev/shm");
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder))
    if (std::string(entry->d_name).starts_with(fmt::format("simclr-{}-", ::getpid()))) names.insert(entry->d_name);
  if (folder != nullptr) ::closedir(folder);
  return names;
}

using MakeBoard = std::function<std::unique_ptr<HeartbeatBoard>(Collectives&, const std::filesystem::path&)>;
class BoardTest : public testing::TestWithParam<std::pair<const char*, MakeBoard>> {};

TEST_P(BoardTest, ShowsEachRanksPulseToAll) {
  TemporaryFolder folder;
  for (int size : {1, 4}) {
    std::atomic<int> claims{0};
    run_ranks(size, [&](Collectives& c) {
      const auto board = GetParam().second(c, folder.path());
      ASSERT_EQ(board->size(), size);
      for (int r = 0; r < size; ++r) EXPECT_EQ(board->read(r).alive, 0u) << "a pulse of an earlier run";
      c.barrier();
      const Pulse mine{.alive = 3u + static_cast<uint64_t>(c.rank()),
                       .progress = uint64_t{1} << 40,
                       .step = 123456789,
                       .phase = Phase::kEvaluating,
                       .waiting = c.rank() % 2 == 0,
                       .left = c.rank() % 2 == 1,
                       .stop_signal = c.rank() == 0 ? 15 : 0,
                       .knows_of_stop = c.rank() % 2 == 1,
                       .begun = c.rank() % 2 == 0};
      board->publish(mine);
      c.barrier();
      for (int r = 0; r < size; ++r) {
        const Pulse seen = board->read(r);
        EXPECT_EQ(seen.alive, 3u + static_cast<uint64_t>(r));
        EXPECT_EQ(seen.progress, uint64_t{1} << 40);
        EXPECT_EQ(seen.step, 123456789);
        EXPECT_EQ(seen.phase, Phase::kEvaluating);
        EXPECT_EQ(seen.waiting, r % 2 == 0);
        EXPECT_EQ(seen.left, r % 2 == 1);
        EXPECT_EQ(seen.stop_signal, r == 0 ? 15 : 0);
        EXPECT_EQ(seen.knows_of_stop, r % 2 == 1);
        EXPECT_EQ(seen.begun, r % 2 == 0);
      }
      claims += board->claim_report();
      claims += board->claim_report();
      c.barrier();
    });
    EXPECT_EQ(claims, 1) << "exactly one rank speaks";
    EXPECT_TRUE(shared_memory_names().empty()) << "the name is still there: " << *shared_memory_names().begin();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Boards, BoardTest,
    testing::Values(
        std::pair<const char*, MakeBoard>("memory",
                                          [](Collectives& c, const auto&) { return make_shared_memory_board(c); }),
        std::pair<const char*, MakeBoard>("file", [](Collectives& c, const auto& f) { return make_file_board(c, f); }),
        std::pair<const char*, MakeBoard>("chosen",
                                          [](Collectives& c, const auto& f) { return make_heartbeat_board(c, 1, f); })),
    [](const auto& board) { return std::string(board.param.first); });

TEST(FileBoard, AHalfWrittenLineIsTheOldPulse) {
  TemporaryFolder folder;
  run_ranks(1, [&](Collectives& c) {
    const auto board = make_file_board(c, folder.path());
    board->publish({.alive = 7, .progress = 1});
    EXPECT_EQ(board->read(0).alive, 7u);
    const auto path = folder.path() / "heartbeat" / "rank_00000";
    std::fstream file(path);
    file << "9";  // alive 9, the checksum still that of alive 7
    file.close();
    EXPECT_EQ(board->read(0).alive, 7u);
    std::filesystem::remove(path);
    EXPECT_EQ(board->read(0).alive, 7u);
  });
}

TEST(FileBoard, AFolderThatCannotBeMadeIsAnErrorOfAll) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "run") << "a file";
  EXPECT_THROW(run_ranks(2, [&](Collectives& c) { make_file_board(c, folder.path() / "run"); }), Error);
}

TEST(HeartbeatBoard, FilesServeSeveralNodes) {
  TemporaryFolder folder;
  run_ranks(2, [&](Collectives& c) { make_heartbeat_board(c, 2, folder.path()); });
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "heartbeat" / "rank_00001"));
}

}  // namespace
}  // namespace simclr
