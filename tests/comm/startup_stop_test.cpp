// A stop before the first step, with a clock that the test turns: all ranks must know of it, and one that is gone
// makes it a failure.
#include "src/comm/startup_stop.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace simclr {
namespace {

using Outcome = StartupStop::Outcome;

// Three ranks that look once a second, each with a StartupStop of its own; a rank that is gone shows nothing new.
class Ranks {
 public:
  void second() {
    now_s_ += 1;
    const std::vector<Pulse> before = pulses;
    for (int r = 0; r < 3; ++r) {
      if (gone[r]) continue;
      ++pulses[r].alive;
      parts_[r].fill(pulses[r], gates[r], signals[r], before);
    }
    for (int r = 0; r < 3; ++r)
      if (!gone[r]) outcomes[r] = parts_[r].look(pulses, !pulses[r].begun, 1, now_s_);
  }
  const StartupStop& part(int rank) const { return parts_[rank]; }

  std::vector<Pulse> pulses = std::vector<Pulse>(3);
  std::vector<int> signals = {0, 0, 0};
  std::array<StartGate, 3> gates;
  std::vector<bool> gone = {false, false, false};
  std::vector<Outcome> outcomes = std::vector<Outcome>(3, Outcome::kContinue);

 private:
  std::vector<StartupStop> parts_ = std::vector<StartupStop>(3, StartupStop(5));
  double now_s_ = 100;
};

TEST(StartupStop, NoRankIsAsked) {
  Ranks ranks;
  ranks.gone[2] = true;  // the stall detector's matter
  for (int s = 0; s < 50; ++s) {
    ranks.second();
    EXPECT_EQ(ranks.outcomes[0], Outcome::kContinue);
  }
}

TEST(StartupStop, AllHaveHeardOneLookLater) {
  Ranks ranks;
  ranks.second();
  ranks.signals[1] = 15;
  ranks.second();
  EXPECT_EQ(ranks.outcomes, std::vector<Outcome>(3, Outcome::kWait));
  ranks.second();
  EXPECT_EQ(ranks.outcomes, std::vector<Outcome>(3, Outcome::kStop));
  EXPECT_EQ(describe_stop(ranks.pulses), "signal 15 to rank 1");
}

TEST(StartupStop, ARankThatIsGoneMakesItAFailure) {
  Ranks ranks;
  ranks.second();
  ranks.gone[2] = true;
  ranks.signals = {15, 15, 0};  // from a launcher that removes what is left
  int seconds = 0;
  do {
    ranks.second();
    ASSERT_NE(ranks.outcomes[0], Outcome::kStop);
    ASSERT_LT(++seconds, 20);
  } while (ranks.outcomes[0] != Outcome::kMissing);
  EXPECT_GT(seconds, 5);
  EXPECT_LT(seconds, 10);
  EXPECT_EQ(ranks.part(0).rank(), 2);
  EXPECT_GT(ranks.part(0).silent_s(), 5);
}

TEST(StartupStop, IsTheControlWordsMatterFromTheFirstStepOn) {
  Ranks ranks;
  for (const int ahead : {1, 2}) ranks.gates[ahead].pass();
  ranks.signals[0] = 10;
  for (int s = 0; s < 20; ++s) {
    ranks.second();
    EXPECT_EQ(ranks.outcomes[0], Outcome::kContinue);
    EXPECT_EQ(ranks.outcomes[1], Outcome::kContinue);
    EXPECT_FALSE(ranks.pulses[1].knows_of_stop);
  }
  ranks.gates[0].pass();  // at once: nothing is in its way
  ranks.second();
  EXPECT_EQ(ranks.outcomes[0], Outcome::kContinue);
  EXPECT_EQ(ranks.pulses[0].stop_signal, 0);
  EXPECT_EQ(describe_stop(ranks.pulses), "");
}

// A rank that has shown a stop waits; where another one was faster it trains on, and the control word has the stop.
TEST(StartupStop, NoRankTrainsWhileAnotherOneEnds) {
  Ranks ranks;
  ranks.second();
  ranks.signals[0] = 10;
  ranks.second();
  EXPECT_TRUE(ranks.pulses[0].knows_of_stop);
  std::atomic<bool> trains{false};
  std::thread main_thread([&] {
    ranks.gates[0].pass();
    trains = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(trains);
  ranks.gates[1].pass();  // before it has looked
  ranks.second();
  EXPECT_EQ(ranks.outcomes[0], Outcome::kContinue);
  ranks.second();
  main_thread.join();
  EXPECT_TRUE(trains);
  ranks.second();
  for (const Outcome outcome : ranks.outcomes) EXPECT_EQ(outcome, Outcome::kContinue);
  EXPECT_FALSE(ranks.gates[0].close()) << "it has passed";
}

}  // namespace
}  // namespace simclr
