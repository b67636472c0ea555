// Owns what a process shares with the other ranks, from before MPI_Init to the exit code. The resources come in the
// order of the functions below and go in the reverse; a command takes as many of the steps as it needs:
//
//   begin_start      a deadline for the start, while ranks cannot watch each other
//   start_mpi        MPI, the log, a communicator for any number of ranks
//   discover_ranks   hosts and cores; ranks of one host watch each other from here on
//   use_reduction    the communicator that the settings ask for
//   lock_folder      one run at a time in a run folder (rank 0)
//   watch_run        the watchdog over all hosts, with status.json
//   start_device     the device, and NCCL on GPUs
//   begin_status     from here on status.json belongs to this run
//
// It ends in order (shut_down) or by force (abort_all_ranks); an exception decides in shut_down_after_error. Asking
// for a resource before its step is a defect: Error(kOther).
#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "kernels/common/error.h"
#include "src/base/beat.h"
#include "src/base/folder_lock.h"
#include "src/base/progress_line.h"
#include "src/base/status_file.h"
#include "src/comm/device_agreement.h"
#include "src/comm/mpi_session.h"
#include "src/comm/nccl_collectives.h"
#include "src/comm/staged_collectives.h"
#include "src/comm/topology.h"
#include "src/comm/watchdog.h"
#include "src/runtime/run_context.h"

namespace simclr {

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // MPI_Init waits for all ranks, and for a host that never comes without end: limit_s ends that, until end_start() or
  // until a watchdog takes over.
  void begin_start(double limit_s = TrainSettings{}.timeout_s);
  void start_mpi();
  void end_start() { start_deadline_.reset(); }

  // Collective, as everything from here on.
  void discover_ranks();
  // Ranks of one host watch each other through shared memory; ranks on several hosts do from watch_run() on, since
  // they need the run folder for it. A host without shared memory: a warning.
  void watch_start();
  // The same for a command without a run folder. setting: Watchdog::Options. AgreedError without shared memory.
  void watch_host(double timeout_s, const std::string& setting);
  void use_reduction(Reduction reduction);
  // Rank 0 alone, within agree_on(). Warns where the file system has no locks.
  void lock_folder(const std::filesystem::path& folder);
  void watch_run(const std::filesystem::path& folder, double timeout_s);
  void start_watchdog(std::unique_ptr<HeartbeatBoard> board, const Watchdog::Options& options);
  void start_device(const DeviceDecision& decision, const Settings& settings);
  // A refused start leaves the status.json of an earlier run alone: call this once nothing can be refused.
  void begin_status(const std::filesystem::path& folder, int64_t step, const std::string& checkpoint);

  // After a step, for status.json should the run end. Returns whether the checkpoint is a new one.
  bool record_progress(int64_t step, const std::string& checkpoint);
  void write_status() const;  // rank 0: "running"

  int rank() const { return mpi().rank(); }
  int size() const { return mpi().size(); }
  bool is_first() const { return rank() == 0; }
  double started_s() const { return started_s_; }  // by monotonic_seconds()
  const RunStatus& status() const { return status_; }
  Heartbeat& heartbeat() { return heartbeat_; }
  Beat beat() {
    return [this] { heartbeat_.beat(); };
  }
  const MpiSession& mpi() const;
  const Topology& topology() const;
  Watchdog& watchdog() const;
  // What carries host memory now: with GPUs MPI makes no call between the choice of the device and MPI_Finalize.
  Collectives& host() const;
  RunContext context();

  // Every rank comes here: finished, or stopped on request (kStopped). Everything durable, then a barrier, then
  // MPI_Finalize, then the exit code (under mpirun the first rank that exits non-zero takes the others with it).
  // Returns what main returns. Throws AgreedError(kOutput) when the log or status.json could not be made durable.
  ExitCode shut_down(ExitCode code, const std::string& reason = "");

  // From the catch of main. An AgreedError was thrown on every rank: rank 0 prints it and all leave in order. Any other
  // exception: this rank prints it, unless another one has already reported why the job ends, and ends all ranks.
  ExitCode shut_down_after_error(const std::exception_ptr& caught) noexcept;

  // For an error of this rank alone, from where it was caught: before anything is destroyed that would wait for a
  // device, which may wait for other ranks. Prints the reason, then ends all ranks.
  [[noreturn]] void abort_all_ranks(const Error& error) noexcept;

 private:
  RunStatus final_status(ExitCode code, const std::string& reason) const;
  std::string name_rank(const std::string& reason) const;
  void report_error(const std::string& reason, ExitCode code, bool agreed) const;
  void finalize();
  void close_nccl();
  [[noreturn]] void abort_process(ExitCode code) noexcept;

  // Destroyed in the reverse order.
  std::optional<MpiSession> mpi_;
  const double started_s_ = monotonic_seconds();
  Heartbeat heartbeat_;
  std::optional<Topology> topology_;
  std::unique_ptr<Collectives> bootstrap_;  // MPI or one process
  std::unique_ptr<Context> context_;
  std::unique_ptr<NcclCollectives> nccl_;      // GPUs
  std::unique_ptr<StagedCollectives> staged_;  // host memory over nccl_
  std::unique_ptr<StartDeadline> start_deadline_;
  std::unique_ptr<Watchdog> watchdog_;
  std::optional<FolderLock> folder_lock_;               // rank 0
  std::optional<std::filesystem::path> status_folder_;  // where shut_down writes status.json
  RunStatus status_;
};

}  // namespace simclr
