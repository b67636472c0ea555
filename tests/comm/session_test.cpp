// How a job is recognized, where its ranks are, and which counts it may have: pure functions with made-up hosts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "src/comm/mpi_session.h"
#include "src/comm/single_process_collectives.h"
#include "src/comm/stop_signals.h"
#include "src/comm/topology.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Launcher launcher(const std::map<std::string, std::string>& environment) {
  return read_launcher([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, NoneMeansOneProcess) {
  EXPECT_FALSE(launcher({}).present);
  EXPECT_NO_THROW(require_one_job(launcher({}), 1));
  EXPECT_NO_THROW(require_launcher(launcher({})));
}

// `info` and `--print-config` run in the shell of a batch script; a training of four tasks does not.
TEST(Launcher, ABatchJobOfSeveralTasksNeedsALauncherToTrain) {
  EXPECT_FALSE(launcher({{"SLURM_NTASKS", "4"}}).present);
  EXPECT_NO_THROW(require_one_job(launcher({{"SLURM_NTASKS", "4"}}), 1));
  EXPECT_THROW(require_launcher(launcher({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}})), Error);
  EXPECT_NO_THROW(require_launcher(launcher({{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}})));
  EXPECT_NO_THROW(require_launcher(launcher({{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}})));
  EXPECT_NO_THROW(require_launcher(launcher({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
}

TEST(Launcher, KnowsTheUsualOnes) {
  EXPECT_TRUE(launcher({{"OMPI_COMM_WORLD_SIZE", "2"}}).present);
  EXPECT_TRUE(launcher({{"PMIX_RANK", "0"}}).present);
  EXPECT_TRUE(launcher({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).present);
  EXPECT_NO_THROW(require_one_job(launcher({{"OMPI_COMM_WORLD_SIZE", "2"}, {"SLURM_STEP_NUM_TASKS", "8"}}), 2));
}

TEST(Launcher, KnowsThePlaceOfThisProcessBeforeMpiDoes) {
  EXPECT_EQ(launcher({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_PROCID", "0"}}).rank, 3);
  EXPECT_EQ(launcher({{"PMIX_RANK", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}).rank, 2);
  EXPECT_EQ(launcher({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).rank, 1);
  EXPECT_EQ(launcher({{"SLURM_PROCID", "1"}}).rank, 0) << "no step of srun";
}

TEST(Launcher, ProcessesThatWouldTrainApartAreRefused) {
  EXPECT_THROW(require_one_job(launcher({{"SLURM_STEP_NUM_TASKS", "4"}}), 1), Error) << "srun without an MPI plugin";
  EXPECT_THROW(require_one_job(launcher({{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}}), 1), Error) << "mpirun of another MPI";
  EXPECT_THROW(require_one_job(launcher({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}), 1), Error);
  using Environment = std::map<std::string, std::string>;
  for (const Environment& four : {Environment{{"PMIX_SIZE", "4"}},
                                  {{"PMIX_RANK", "3"}},
                                  {{"JSM_NAMESPACE_SIZE", "4"}, {"JSM_NAMESPACE_RANK", "0"}},
                                  {{"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_RANK", "0"}},
                                  {{"MPIRUN_NTASKS", "4"}},
                                  {{"MV2_COMM_WORLD_SIZE", "4"}},
                                  {{"PALS_RANKID", "3"}},
                                  {{"PALS_RANKID", "0"}, {"PALS_LOCAL_SIZE", "4"}}}) {
    EXPECT_TRUE(launcher(four).present) << four.begin()->first;
    EXPECT_THROW(require_one_job(launcher(four), 1), Error) << four.begin()->first;
    EXPECT_NO_THROW(require_one_job(launcher(four), 4)) << four.begin()->first;
  }
  EXPECT_NO_THROW(require_one_job(launcher({{"PALS_RANKID", "0"}, {"PALS_LOCAL_SIZE", "2"}}), 4)) << "on two hosts";
}

TEST(MpiSession, WithoutALauncherThereIsNoMpi) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) GTEST_SKIP() << "started by mpirun";
  MpiSession session;
  EXPECT_FALSE(session.uses_mpi());
  EXPECT_EQ(session.size(), 1);
  EXPECT_EQ(session.library_version(), "none");
  session.finish();
}

PlaceFacts place(const char* host, const std::vector<int>& cores, int launcher_cores) {
  PlaceFacts facts;
  std::strcpy(facts.host.data(), host);
  for (const int core : cores) facts.allowed[core / 64] |= uint64_t{1} << (core % 64);
  facts.launcher_cores = launcher_cores;
  return facts;
}

TEST(Topology, FindsNeighborsByHost) {
  const std::vector<PlaceFacts> places = {place("a", {0}, 8), place("b", {0}, 8), place("a", {1}, 8),
                                          place("b", {1}, 8), place("b", {2}, 8)};
  const Topology t = make_topology(3, places);
  EXPECT_EQ(t.size, 5);
  EXPECT_EQ(t.local_rank, 1);
  EXPECT_EQ(t.local_size, 3);
  EXPECT_EQ(t.nodes, 2);
  EXPECT_EQ(t.node, make_topology(1, places).node);
  EXPECT_NE(t.node, make_topology(0, places).node);
  EXPECT_EQ(t.host(), "b");
  EXPECT_EQ(make_topology(2, places).local_rank, 1);
}

TEST(Topology, SameNameOnAnotherMachineIsAnotherNode) {
  std::vector<PlaceFacts> places = {place("localhost", {0}, 1), place("localhost", {0}, 1)};
  EXPECT_EQ(make_topology(0, places).nodes, 1);
  std::strcpy(places[1].boot_id.data(), "another");
  EXPECT_EQ(make_topology(0, places).nodes, 2);
}

TEST(Threads, UnboundRanksShareTheCoresBoundOnesKeepTheirs) {
  const std::vector<int> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(choose_threads(make_topology(0, std::vector{place("a", eight, 8)}), 0), 8);
  EXPECT_EQ(choose_threads(make_topology(0, std::vector{place("a", eight, 8), place("a", eight, 8)}), 0), 4);
  EXPECT_EQ(choose_threads(make_topology(0, std::vector{place("a", eight, 8), place("b", eight, 8)}), 0), 8);
  EXPECT_EQ(choose_threads(make_topology(1, std::vector{place("a", {0, 1}, 8), place("a", {66, 67, 68}, 8)}), 0), 3);
  EXPECT_EQ(choose_threads(make_topology(0, std::vector<PlaceFacts>(4, place("a", {0, 1}, 2))), 0), 1) << "never none";
  EXPECT_EQ(choose_threads(make_topology(0, std::vector{place("a", eight, 8)}), 3), 3);
}

TEST(Binding, OneWarningSaysWhatToDo) {
  const std::vector<PlaceFacts> bound = {place("a", {0}, 32), place("a", {1}, 32)};
  const auto warning = binding_warning(make_topology(1, bound), 0);
  ASSERT_TRUE(warning.has_value());
  EXPECT_THAT(*warning, AllOf(HasSubstr("rank 0 (a) is bound to 1 of 32 cores"), HasSubstr("16 threads"),
                              HasSubstr("--bind-to none")));
  EXPECT_FALSE(binding_warning(make_topology(0, bound), 1).has_value());
  const std::vector<PlaceFacts> free_ranks(2, place("a", {0, 1, 2, 3}, 4));
  EXPECT_FALSE(binding_warning(make_topology(0, free_ranks), 0).has_value());
  EXPECT_FALSE(binding_warning(make_topology(0, free_ranks), 4).has_value());
  EXPECT_THAT(*binding_warning(make_topology(0, free_ranks), 5),
              AllOf(HasSubstr("4 cores"), Not(HasSubstr("--bind-to"))));
  EXPECT_FALSE(binding_warning(make_topology(0, std::vector{place("a", {0}, 1), place("a", {0}, 1)}), 0).has_value());
}

TEST(Topology, OfThisProcess) {
  SingleProcessCollectives one;
  const Topology t = discover_topology(one);
  EXPECT_EQ(t.host(), host_name());
  EXPECT_GE(t.fair_cores, 1);
  EXPECT_EQ(t.fair_cores, t.allowed_cores[0]);
}

// In a process of its own: a stop that was asked for stays asked for, also for the tests that come after.
TEST(StopSignalsDeathTest, TheFirstOneCounts) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        const int before = stop_signal();
        std::raise(SIGUSR1);
        const int first = stop_signal();
        std::raise(SIGTERM);
        std::raise(SIGINT);
        std::raise(SIGPIPE);
        std::fprintf(stderr, "%d %d %d", before, first, stop_signal());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), fmt::format("^0 {} {}$", SIGUSR1, SIGUSR1));
}

TEST(StopSignalsDeathTest, EveryNoticeOfASchedulerIsOne) {
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGXCPU})
    EXPECT_EXIT(
        {
          install_signal_handlers();
          std::raise(number);
          std::_Exit(stop_signal() == number ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(StopSignalsDeathTest, WhatWasIgnoredAtTheStartStaysIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);  // nohup
        install_signal_handlers();
        install_signal_handlers();  // after MPI_Init
        std::raise(SIGHUP);
        const int after_hup = stop_signal();
        std::raise(SIGUSR2);
        std::_Exit(after_hup == 0 && stop_signal() == SIGUSR2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace simclr
