// The two ways a rank ends. In order: everything durable, then a barrier, then MPI_Finalize, then the exit code (under
// mpirun the first rank that exits non-zero takes the others with it). By force: the reason once, then all ranks.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>

#include "kernels/common/error.h"
#include "src/base/status_file.h"
#include "src/comm/collectives.h"
#include "src/comm/mpi_session.h"
#include "src/comm/watchdog.h"

namespace simclr {

// What of the program exists when it ends; each may be missing.
struct WayOut {
  MpiSession* session = nullptr;
  Collectives* collectives = nullptr;
  Watchdog* watchdog = nullptr;
  std::filesystem::path run_folder;  // empty: not known yet, no status.json
  RunStatus status;                  // step, checkpoint, ranks, rank, host; the rest is filled in here
  // Between the barrier and MPI_Finalize, while the ranks still watch each other: lets go of what ranks close together.
  std::function<void()> close = {};
};

// Every rank comes here: finished, or stopped on request (kStopped). Returns what main returns; kOutput when the log or
// status.json could not be made durable.
ExitCode leave_in_order(const WayOut& way, ExitCode code, const std::string& reason = "");

// From the catch of main. An AgreedError was thrown on every rank: rank 0 prints it and all leave in order. Any other
// exception: this rank prints it, unless another one has already said why the job ends, and ends all ranks.
ExitCode leave_after_error(const WayOut& way, const std::exception_ptr& caught) noexcept;

// The same for an error of this rank alone, from where it was caught: before anything is destroyed that would wait for
// a device, which may wait for other ranks.
[[noreturn]] void end_all_ranks(const WayOut& way, const Error& error) noexcept;

}  // namespace simclr
