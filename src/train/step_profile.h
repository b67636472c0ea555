// `--profile`: measures N steps after a warm-up, then writes the result into the run folder (profile.txt and the log on
// rank 0, a trace of every rank) and stops measuring. No influence on the results of training.
#pragma once

#include <filesystem>
#include <memory>

#include "src/comm/profiled_collectives.h"
#include "src/metrics/profile_table.h"
#include "src/runtime/run_context.h"

namespace simclr {

class StepProfile {
 public:
  static constexpr int64_t kWarmUpSteps = 3;
  static constexpr const char* kTableName = "profile.txt";
  static std::string trace_name(int rank);  // trace_rank_0.json

  // Collective: it measures the peak of the machine with all ranks of a host at work. The context is a CPU's and
  // outlives this.
  StepProfile(int64_t steps, const RunContext& run, std::filesystem::path run_folder);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // The same, with collectives that the profile measures.
  RunContext run_context();

  // Before and after a step; number counts from 1. end_step() of the last one writes the files: Error(kOutput).
  void begin_step(int64_t number);
  void end_step();
  // At the end of the run: writes the steps measured so far, if they are not written yet.
  void finish();

 private:
  void write();

  const int64_t steps_;
  const RunContext run_;
  const std::filesystem::path run_folder_;
  const ProfileFacts facts_;
  Profiler profiler_;
  ProfiledCollectives collectives_;
  int64_t seen_ = 0;  // steps, including the warm-up
  bool written_ = false;
};

}  // namespace simclr
