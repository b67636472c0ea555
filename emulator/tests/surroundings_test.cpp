// What the environment chooses: devices, their absence, protection, leaks, orders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <sstream>

#include "emulator/tests/scenario.h"

namespace simclr::test {

namespace {

using testing::HasSubstr;
using testing::Not;

// The UUIDs in what the scenario "devices" prints.
std::vector<std::string> uuids(const std::string& output) {
  std::vector<std::string> found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find("uuid "); at != std::string::npos) found.push_back(line.substr(at + 5));
  }
  return found;
}

TEST(Devices, OneUnlessAskedFor) {
  const Outcome outcome = run_scenario("devices");
  EXPECT_THAT(outcome.output, HasSubstr("cudaSuccess, 1 devices, driver some"));
  EXPECT_THAT(outcome.output, HasSubstr("device 0: Emulated GPU, 9.0, uuid "));
  EXPECT_THAT(outcome.output, HasSubstr("malloc cudaSuccess"));
}

TEST(Devices, HaveTheSameUuidsInEveryProcess) {
  const auto four = uuids(run_scenario("devices", {{"EMULATOR_DEVICES", "4"}}).output);
  ASSERT_EQ(four.size(), 4U);
  EXPECT_EQ(std::set<std::string>(four.begin(), four.end()).size(), 4U);
  EXPECT_EQ(uuids(run_scenario("devices", {{"EMULATOR_DEVICES", "4"}}).output), four);
  EXPECT_EQ(uuids(run_scenario("devices").output), std::vector<std::string>{four[0]});
}

TEST(Devices, VisibleOnesAreChosenAndOrderedByNumber) {
  const auto four = uuids(run_scenario("devices", {{"EMULATOR_DEVICES", "4"}}).output);
  const auto visible = [](const char* list) {
    return run_scenario("devices", {{"EMULATOR_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", list}}).output;
  };
  EXPECT_EQ(uuids(visible("2")), (std::vector<std::string>{four[2]}));
  EXPECT_EQ(uuids(visible("3,1")), (std::vector<std::string>{four[3], four[1]}));
  EXPECT_EQ(uuids(visible("1,9,0")), (std::vector<std::string>{four[1]}));  // up to the first that is none
  EXPECT_THAT(visible("-1"), HasSubstr("cudaErrorNoDevice, 0 devices"));
}

TEST(Devices, NoDriver) {
  const Outcome outcome = run_scenario("devices", {{"EMULATOR_NO_DEVICE", "driver"}});
  EXPECT_THAT(outcome.output, HasSubstr("cudaErrorInsufficientDriver, 0 devices, driver none"));
  EXPECT_THAT(outcome.output, HasSubstr("last cudaErrorInsufficientDriver, then cudaSuccess"));
  EXPECT_THAT(outcome.output, HasSubstr("malloc cudaErrorInsufficientDriver"));
}

TEST(Devices, DriverButNoDevice) {
  const Outcome outcome = run_scenario("devices", {{"EMULATOR_NO_DEVICE", "device"}});
  EXPECT_THAT(outcome.output, HasSubstr("cudaErrorNoDevice, 0 devices, driver some"));
  EXPECT_THAT(outcome.output, HasSubstr("malloc cudaErrorNoDevice"));
}

TEST(Devices, WhatBelongsToOneIsRefusedOnAnother) {
  const Outcome outcome = run_scenario("mix_devices", {{"EMULATOR_DEVICES", "2"}});
  EXPECT_THAT(outcome.output, HasSubstr("own cudaSuccess\n"));
  EXPECT_THAT(outcome.output, HasSubstr("pointer cudaErrorIllegalAddress\n"));
  EXPECT_THAT(outcome.output, HasSubstr("stream cudaErrorInvalidResourceHandle\n"));
  EXPECT_THAT(outcome.output, HasSubstr("a new thread is on device 0\n"));
  EXPECT_THAT(outcome.output, HasSubstr("device 2 cudaErrorInvalidDevice\n"));
}

TEST(Protection, MakesTheHostsAccessASegmentationFault) {
  EXPECT_THAT(run_scenario("host_reads_device").output, HasSubstr("value 1"));
  const Outcome outcome = run_scenario("host_reads_device", {{"EMULATOR_PROTECT", "1"}});
  EXPECT_FALSE(outcome.ended_well());
  EXPECT_THAT(outcome.output, Not(HasSubstr("value")));
}

TEST(Protection, LeavesKernelsAndCopiesAlone) {
  const Outcome outcome = run_scenario("event", {{"EMULATOR_PROTECT", "1"}, {"EMULATOR_STREAMS", "lazy"}});
  EXPECT_TRUE(outcome.ended_well());
  EXPECT_THAT(outcome.output, HasSubstr("value 3"));
}

TEST(Leaks, AreListedAtTheEnd) {
  EXPECT_TRUE(run_scenario("leak").ended_well());
  const Outcome outcome = run_scenario("leak", {{"EMULATOR_LEAKS", "1"}});
  EXPECT_EQ(outcome.exit_code, 99);
  EXPECT_THAT(outcome.output, HasSubstr("leak: device memory of 1000 bytes was never freed"));
  EXPECT_TRUE(run_scenario("event", {{"EMULATOR_LEAKS", "1"}}).ended_well());
}

TEST(Settings, RandomOrdersFollowTheSeed) {
  const auto order = [](const char* seed) {
    return run_scenario("order", {{"EMULATOR_ORDER", "random"}, {"EMULATOR_SEED", seed}}).output;
  };
  EXPECT_EQ(order("7"), order("7"));
  EXPECT_NE(order("7"), order("8"));
}

TEST(Settings, AFaultBreaksTheKernelThatItNames) {
  EXPECT_THAT(run_scenario("event", {{"EMULATOR_FAULT", "0:2"}}).output, HasSubstr("value 3"));
  const Outcome outcome = run_scenario("event", {{"EMULATOR_FAULT", "0:1"}});
  EXPECT_THAT(outcome.output, HasSubstr("the planted fault"));
  EXPECT_THAT(outcome.output, HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_THAT(run_scenario("event", {{"EMULATOR_FAULT", "1:1"}, {"EMULATOR_DEVICES", "2"}}).output,
              Not(HasSubstr("planted")))
      << "of another device";
  for (const char* wrong : {"0", "0:0", "-1:1", "0:1x"})
    EXPECT_EQ(run_scenario("event", {{"EMULATOR_FAULT", wrong}}).exit_code, 2) << wrong;
}

TEST(Settings, MisspeltValuesEndTheProcess) {
  const Outcome outcome = run_scenario("devices", {{"EMULATOR_ORDER", "backwards"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("EMULATOR_ORDER=backwards is none of the values that it takes"));
  EXPECT_EQ(run_scenario("devices", {{"EMULATOR_DEVICES", "0"}}).exit_code, 2);
  EXPECT_EQ(run_scenario("devices", {{"EMULATOR_SEED", "x"}}).exit_code, 2);
  EXPECT_EQ(run_scenario("devices", {{"EMULATOR_STREAM", "lazy"}}).exit_code, 2);
}

}  // namespace

}  // namespace simclr::test
