// What is said of a /dev/shm that is too small, by made-up sizes; and what the launcher says of the ranks of a host.
#include "src/comm/shared_memory_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMebibyte = 1 << 20;

TEST(SharedMemorySpace, TooLittleForMpiIsNamedWithTheRemedy) {
  const auto text = describe_shared_memory_shortage({.local_ranks = 2, .free_bytes = kMebibyte * 3 / 2});
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, AllOf(HasSubstr("/dev/shm has 1.5 MiB free"), HasSubstr("the 2 ranks of this host want 8 MiB"),
                           HasSubstr("Open MPI"), HasSubstr("--ipc=host or --shm-size=1g")));
}

TEST(SharedMemorySpace, WhatDockerGivesIsEnoughForSixteenRanksAndForNoTwoGpus) {
  EXPECT_FALSE(describe_shared_memory_shortage({.local_ranks = 16, .free_bytes = 64 * kMebibyte}).has_value());
  EXPECT_TRUE(describe_shared_memory_shortage({.local_ranks = 17, .free_bytes = 64 * kMebibyte}).has_value());
  const auto text = describe_shared_memory_shortage({.local_ranks = 8, .free_bytes = 64 * kMebibyte, .has_gpus = true});
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, AllOf(HasSubstr("the 8 ranks of this host want 512 MiB"), HasSubstr("NCCL")));
  EXPECT_FALSE(
      describe_shared_memory_shortage({.local_ranks = 8, .free_bytes = 512 * kMebibyte, .has_gpus = true}).has_value());
}

TEST(SharedMemorySpace, ARankAloneSharesNothing) {
  EXPECT_FALSE(describe_shared_memory_shortage({.local_ranks = 1, .free_bytes = 0, .has_gpus = true}).has_value());
  EXPECT_FALSE(describe_shared_memory_shortage({.local_ranks = 0, .free_bytes = 0, .has_gpus = true}).has_value());
}

Launcher launcher(const std::map<std::string, std::string>& environment) {
  return read_launcher([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(SharedMemorySpace, RanksOfTheHostByMpirunAndBySrun) {
  const Launcher by_mpirun = launcher({{"OMPI_COMM_WORLD_SIZE", "8"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                       {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                       {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(by_mpirun.local_ranks, 4);
  EXPECT_EQ(by_mpirun.local_rank, 3) << "below mpirun Slurm's numbers are those of mpirun's helpers";
  const Launcher by_srun =
      launcher({{"PMIX_RANK", "5"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2"}, {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(by_srun.local_ranks, 4);
  EXPECT_EQ(by_srun.local_rank, 1);
  EXPECT_EQ(launcher({}).local_ranks, 0);
}

}  // namespace
}  // namespace simclr
