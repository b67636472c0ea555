// The learning rate of each step, by hand.
#include "src/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/common/error.h"

namespace simclr {
namespace {

TEST(Schedule, WarmsUpLinearlyAndReachesThePeakAtItsLastStep) {
  const Schedule s(ScheduleType::kCosine, 2.0, 4, 12);
  EXPECT_DOUBLE_EQ(s.learning_rate(0), 0.5);  // never zero: step 0 counts
  EXPECT_DOUBLE_EQ(s.learning_rate(1), 1.0);
  EXPECT_DOUBLE_EQ(s.learning_rate(3), 2.0);
}

TEST(Schedule, CosineStartsAtThePeakAndEndsOneStepShortOfZero) {
  const Schedule s(ScheduleType::kCosine, 2.0, 4, 12);  // cosine over steps 4..12
  EXPECT_DOUBLE_EQ(s.learning_rate(4), 2.0);
  EXPECT_DOUBLE_EQ(s.learning_rate(6), 1.0 + std::sqrt(0.5));   // cos(pi/4)
  EXPECT_DOUBLE_EQ(s.learning_rate(8), 1.0);                    // cos(pi/2)
  EXPECT_DOUBLE_EQ(s.learning_rate(10), 1.0 - std::sqrt(0.5));  // cos(3 pi/4)
  EXPECT_NEAR(s.learning_rate(11), 0.076120467488713, 1e-14);   // 1 + cos(7 pi/8)
  EXPECT_NEAR(s.learning_rate(12), 0.0, 1e-15);                 // the first step that is not taken
  EXPECT_NEAR(s.learning_rate(1000), 0.0, 1e-15);               // and it does not rise again
}

TEST(Schedule, WithoutWarmupStartsAtThePeak) {
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kCosine, 3.0, 0, 2).learning_rate(0), 3.0);
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kCosine, 3.0, 0, 2).learning_rate(1), 1.5);
}

TEST(Schedule, ConstantStaysAtThePeakAfterWarmup) {
  const Schedule s(ScheduleType::kConstant, 2.0, 2, 10);
  EXPECT_DOUBLE_EQ(s.learning_rate(0), 1.0);
  for (const int64_t step : {1, 2, 5, 9, 10, 100}) EXPECT_DOUBLE_EQ(s.learning_rate(step), 2.0) << step;
}

TEST(Schedule, StepDropsAtEachMilestone) {
  const Schedule s(ScheduleType::kStep, 2.0, 2, 10, {.milestones = {4, 7}, .gamma = 0.5});
  const double expected[] = {1, 2, 2, 2, 1, 1, 1, 0.5, 0.5, 0.5};
  for (int64_t step = 0; step < 10; ++step) EXPECT_DOUBLE_EQ(s.learning_rate(step), expected[step]) << step;
  // One within the warm-up counts from its end on.
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kStep, 2.0, 2, 10, {.milestones = {1}, .gamma = 0.5}).learning_rate(1), 2.0);
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kStep, 2.0, 2, 10, {.milestones = {1}, .gamma = 0.5}).learning_rate(2), 1.0);
}

TEST(Schedule, ShortRuns) {
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kCosine, 3.0, 0, 1).learning_rate(0), 3.0);
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kCosine, 3.0, 1, 1).learning_rate(0), 3.0);
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kCosine, 3.0, 0, 0).learning_rate(0), 0.0);
  EXPECT_DOUBLE_EQ(Schedule(ScheduleType::kConstant, 3.0, 0, 0).learning_rate(0), 3.0);
}

TEST(Schedule, ARunShorterThanItsWarmupEndsWithinIt) {
  const Schedule s(ScheduleType::kCosine, 3.0, 10, 3);
  EXPECT_EQ(s.warmup_steps(), 10);
  EXPECT_DOUBLE_EQ(s.learning_rate(0), 0.3);
  EXPECT_DOUBLE_EQ(s.learning_rate(2), 0.9);
}

// A resumed run asks for step k without having asked for those before it.
TEST(Schedule, IsAFunctionOfTheStepAlone) {
  const Schedule s(ScheduleType::kCosine, 0.7, 5, 40);
  std::vector<double> forwards;
  for (int64_t step = 0; step < 40; ++step) forwards.push_back(s.learning_rate(step));
  for (int64_t step = 39; step >= 0; --step)
    EXPECT_EQ(Schedule(ScheduleType::kCosine, 0.7, 5, 40).learning_rate(step), forwards[step]) << step;
  for (size_t step = 5; step + 1 < forwards.size(); ++step) EXPECT_GT(forwards[step], forwards[step + 1]);
}

TEST(Schedule, RefusesNegativeCounts) {
  EXPECT_THROW(Schedule(ScheduleType::kCosine, 1.0, -1, 3), Error);
  EXPECT_THROW(Schedule(ScheduleType::kCosine, 1.0, 0, -3), Error);
}

}  // namespace
}  // namespace simclr
