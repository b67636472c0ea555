// A training run from settings to exit code: puts the parts together in the order in which they depend on each other,
// then hands over to the Trainer. Every rank runs it.
#pragma once

#include <memory>

#include "src/base/folder_lock.h"
#include "src/base/progress_line.h"
#include "src/comm/nccl_collectives.h"
#include "src/comm/staged_collectives.h"
#include "src/comm/way_out.h"
#include "src/config/command_line.h"
#include "src/train/site.h"

namespace simclr {

// What of the run exists, for the catch in main: filled in as the run gets on, valid until `clear`.
struct RunHandles {
  MpiSession* session = nullptr;
  double started_s = monotonic_seconds();
  Heartbeat heartbeat;
  std::unique_ptr<Collectives> bootstrap;         // MPI or one process; the only one until the device is chosen
  std::unique_ptr<Context> context;               // of the device
  std::unique_ptr<NcclCollectives> nccl;          // of GPUs
  std::unique_ptr<StagedCollectives> staged;      // host memory over nccl
  std::unique_ptr<StartDeadline> start_deadline;  // from before MPI_Init until the ranks can watch each other
  std::unique_ptr<Watchdog> watchdog;

  // What carries host memory now: with GPUs MPI makes no call between the choice of the device and MPI_Finalize.
  Collectives& host() const;
  Site site() const;
  WayOut way();

  std::filesystem::path run_folder;
  std::unique_ptr<FolderLock> folder_lock;  // rank 0's
  RunStatus status;
};

// Trains (or only prints, with --print-config and --dry-run) and leaves in order. Throws Error or AgreedError.
ExitCode train(const CommandLine& command_line, RunHandles& handles);

}  // namespace simclr
