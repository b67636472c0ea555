// `--profile`: measures a number of steps after some to warm up, then writes what it found into the run folder
// (profile.txt and the log on rank 0, a trace of every rank) and takes no more part. Changes nothing that training
// sees.
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

  // Collective, since all ranks of a host load it at the same time. The context is a CPU's and
  // outlives this.
  StepProfile(int64_t steps, const RunContext& run, std::filesystem::path run_folder);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // The same, with collectives that the profile measures.
  RunContext run_context();

  // Around a step; the number counts from 1. The last of the steps writes: Error(kOutput).
  void begin_step(int64_t number);
  void end_step();
  // When the run ends: writes what there is by then, if that has not been done.
  void finish();

 private:
  void write();

  const int64_t steps_;
  const RunContext run_;
  const std::filesystem::path run_folder_;
  const ProfileFacts facts_;
  Profiler profiler_;
  ProfiledCollectives collectives_;
  int64_t seen_ = 0;  // steps, those to warm up among them
  bool written_ = false;
};

}  // namespace simclr
