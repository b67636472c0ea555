// Which convolutions a resumed run uses: those of its checkpoint, unless its settings ask for others.
#include "src/train/recorded_plans.h"

#include <gtest/gtest.h>

#include "src/config/resolved.h"

namespace simclr {
namespace {

constexpr const char* kText = "conv1.weight: direct; direct; layer1.0.conv1.weight: winograd; winograd; direct";

CheckpointHeader header_of(const Settings& settings) {
  CheckpointHeader header;
  header.config_yaml = print_config(settings);
  return header;
}

TEST(RecordedPlans, AreTakenWhereTheSameIsAskedFor) {
  const Settings settings;
  CheckpointHeader header = header_of(settings);
  header.environment[kPlansKey] = kText;
  const RecordedPlans plans = recorded_plans(header, settings);
  EXPECT_EQ(plans.names, read_plan_names(kText));
  EXPECT_EQ(plans.otherwise, ConvolutionAlgorithm::kAuto);

  Settings direct;
  direct.model.convolution = ConvolutionAlgorithm::kDirect;
  EXPECT_TRUE(recorded_plans(header, direct).names.empty());
  EXPECT_EQ(recorded_plans(header, direct).otherwise, ConvolutionAlgorithm::kDirect);
}

TEST(RecordedPlans, OfAnOlderCheckpointAreDirect) {
  const Settings settings;
  const RecordedPlans plans = recorded_plans(header_of(settings), settings);
  EXPECT_TRUE(plans.names.empty());
  EXPECT_EQ(plans.otherwise, ConvolutionAlgorithm::kDirect);
}

TEST(RecordedPlans, LackWinogradWhereItWasRecordedAndIsNotThere) {
  const PlanNames recorded = read_plan_names(kText);
  EXPECT_FALSE(lack_winograd_of(recorded, recorded));
  PlanNames mine = recorded;
  mine["layer1.0.conv1.weight"] = "direct; direct; direct";
  EXPECT_TRUE(lack_winograd_of(recorded, mine));
  EXPECT_FALSE(lack_winograd_of(mine, recorded)) << "direct convolutions are to be had everywhere";
  EXPECT_FALSE(lack_winograd_of(read_plan_names("conv1.weight: engine 3 knobs; engine 0 knobs"), mine));
}

}  // namespace
}  // namespace simclr
