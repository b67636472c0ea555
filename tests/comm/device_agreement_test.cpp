// Which GPU each rank gets, agreed between processes that see different machines: each test is a job of its own, in
// which a rank sets up what its process sees before it first asks (the emulator's variables).
#include "src/comm/device_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "src/comm/agreement.h"
#include "src/comm/make_collectives.h"
#include "src/comm/topology.h"
#include "tests/harness/mpi_test_main.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DeviceAgreement : public testing::Test {
 protected:
  DeviceAgreement()
      : collectives(make_collectives(test_session(), Reduction::kFastest, nullptr)),
        topology(discover_topology(*collectives)) {}

  static void see(const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); }
  DeviceDecision decide(DeviceChoice choice) { return agree_on_device(*collectives, topology, choice); }

  // The same refusal on every rank: the text of an AgreedError.
  std::string refusal(DeviceChoice choice) {
    try {
      decide(choice);
    } catch (const AgreedError& e) {
      EXPECT_EQ(e.code(), ExitCode::kDevice);
      require_equal(*collectives, ExitCode::kOther, "the refusal", e.what(), "");
      return e.what();
    }
    return "nothing was refused";
  }
  int rank() const { return topology.rank; }

  std::unique_ptr<Collectives> collectives;
  Topology topology;
};

TEST_F(DeviceAgreement, EachRankSeesOneOfItsOwn) {
  see("EMULATOR_DEVICES", "2");
  see("CUDA_VISIBLE_DEVICES", std::to_string(1 - rank()));
  for (const DeviceChoice choice : {DeviceChoice::kCuda, DeviceChoice::kAuto}) {
    const DeviceDecision decision = decide(choice);
    EXPECT_TRUE(decision.cuda);
    EXPECT_EQ(decision.ordinal, 0);
    EXPECT_EQ(decision.sentence, "");
  }
}

TEST_F(DeviceAgreement, AllSeeAllAndTakeTheirPlace) {
  see("EMULATOR_DEVICES", "4");
  EXPECT_EQ(decide(DeviceChoice::kCuda).ordinal, topology.local_rank);
}

TEST_F(DeviceAgreement, TheSameOneIsRefused) {
  see("EMULATOR_DEVICES", "1");
  EXPECT_THAT(refusal(DeviceChoice::kCuda),
              AllOf(HasSubstr("ranks 0 and 1 (both on " + topology.host() + ")"), HasSubstr("one GPU (Emulated GPU)"),
                    HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(refusal(DeviceChoice::kAuto), HasSubstr("ranks 0 and 1"));
}

// The first GPU that rank 0 sees is the second one of rank 1: only the UUID shows it.
TEST_F(DeviceAgreement, TheSameOneUnderAnotherNumberIsRefused) {
  see("EMULATOR_DEVICES", "2");
  see("CUDA_VISIBLE_DEVICES", rank() == 0 ? "0,1" : "1,0");
  EXPECT_THAT(refusal(DeviceChoice::kCuda), HasSubstr("ranks 0 and 1"));
}

TEST_F(DeviceAgreement, FewerThanRanksAreRefused) {
  see("EMULATOR_DEVICES", "2");
  EXPECT_THAT(refusal(DeviceChoice::kCuda), HasSubstr("3 ranks on this node and 2 GPUs"));
}

TEST_F(DeviceAgreement, OnlySomeRanksHaveOne) {
  if (rank() == 1) see("EMULATOR_NO_DEVICE", "driver");
  for (const DeviceChoice choice : {DeviceChoice::kCuda, DeviceChoice::kAuto})
    EXPECT_THAT(refusal(choice), HasSubstr("rank 1 (" + topology.host() +
                                           ") sees no GPU (no NVIDIA driver is loaded) while other ranks do"));
  EXPECT_FALSE(decide(DeviceChoice::kCpu).cuda);
}

TEST_F(DeviceAgreement, NoRankHasOne) {
  see("EMULATOR_NO_DEVICE", "device");
  const DeviceDecision decision = decide(DeviceChoice::kAuto);
  EXPECT_FALSE(decision.cuda);
  EXPECT_THAT(decision.sentence, AllOf(HasSubstr("no GPU: "), HasSubstr("computing on the CPU")));
  EXPECT_THAT(refusal(DeviceChoice::kCuda), HasSubstr("run.device: cuda, but there is no GPU"));
  EXPECT_EQ(decide(DeviceChoice::kCpu).sentence, "") << "none was asked for";
}

}  // namespace
}  // namespace simclr
