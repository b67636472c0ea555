// The text in which a checkpoint records the plans of convolutions, read back.
#include "src/nn/plan_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simclr {
namespace {

TEST(PlanNames, AreReadByTheNameOfTheWeight) {
  EXPECT_EQ(read_plan_names("conv1.weight: engine 12 knobs 2=3; engine 0 knobs; layer1.0.conv1.weight: engine 2 knobs "
                            "2=3,13=4; engine 1 knobs; engine 5 knobs"),
            (PlanNames{{"conv1.weight", "engine 12 knobs 2=3; engine 0 knobs"},
                       {"layer1.0.conv1.weight", "engine 2 knobs 2=3,13=4; engine 1 knobs; engine 5 knobs"}}));
}

TEST(PlanNames, AreNoneInATextOfNone) {
  EXPECT_TRUE(read_plan_names("").empty());
  EXPECT_TRUE(read_plan_names("engine 1 knobs; engine 2 knobs").empty());
  EXPECT_EQ(read_plan_names("conv1.weight: "), (PlanNames{{"conv1.weight", ""}}));
}

TEST(PlanNames, OfACpuAreOneSentence) {
  EXPECT_EQ(summarize_cpu_plans("conv1.weight: direct; direct; layer1.0.conv1.weight: direct; direct; direct"),
            "direct");
  EXPECT_EQ(summarize_cpu_plans("conv1.weight: direct; direct; layer1.0.conv1.weight: winograd; direct; winograd"),
            "Winograd F(4x4, 3x3) in 2 of 5 passes, direct in the others");
  EXPECT_EQ(
      summarize_cpu_plans("conv1.weight: direct; gemm; layer1.0.conv1.weight: winograd; direct; gemm"),
      "Winograd F(4x4, 3x3) in 1 of 5 passes, im2col and a matrix product in 2 of 5 passes, direct in the others");
}

TEST(PlanChoices, AreThoseOfTheRankUnlessShared) {
  EXPECT_EQ(PlanChoices{}.share("engine 3 knobs"), "engine 3 knobs");
}

}  // namespace
}  // namespace simclr
