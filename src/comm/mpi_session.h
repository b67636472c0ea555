// The MPI of this process, from start to orderly end; or its absence: without a launcher in the environment the program
// is one process and never calls MPI_Init. Everything that includes mpi.h is a .cpp of this folder.
// Only the main thread calls MPI (MPI_THREAD_FUNNELED).
#pragma once

#include <functional>
#include <string>

#include "kernels/common/error.h"

namespace simclr {

class MpiSession {
 public:
  // Error(kDevice) when launcher and MPI do not fit together (see read_launcher).
  MpiSession();
  // Does not finalize: MPI_Finalize waits for ranks that may never come. Call finish() on the orderly path.
  ~MpiSession() = default;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  bool uses_mpi() const { return uses_mpi_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string library_version() const;  // "Open MPI v4.1.4"; "none" without MPI

  // MPI_Finalize; every rank comes here. After it only the way to exit is left.
  void finish();

  // Ends all ranks now with this code (never 0). Logs must be out: nothing runs afterwards.
  [[noreturn]] void abort_all(ExitCode code) noexcept;

 private:
  bool uses_mpi_ = false;
  bool finished_ = false;
  int rank_ = 0;
  int size_ = 1;
};

// What the environment says about how the process was started.
struct Launcher {
  bool present = false;
  int ranks = 0;                        // processes it started as one job; 0: it does not say
  int ranks_at_least = 0;               // where it does not: from its other variables
  int job_tasks = 0;                    // tasks of the batch job, where no launcher started this process; 0: none
  int rank = 0;                         // this one's place among them; 0 when it does not say
  int local_ranks = 0, local_rank = 0;  // of them on this host, and this one's place there; 0 when it does not say
};
using GetEnvironment = std::function<const char*(const char*)>;
Launcher read_launcher(const GetEnvironment& get);
Launcher read_launcher();  // of this process

// Throws Error(kDevice) unless MPI's size is the launcher's count: several processes that each believe to be alone
// would train the same model side by side and overwrite each other.
void require_one_job(const Launcher& launcher, int mpi_size);

// For a training. Throws Error(kDevice) when the batch job has several tasks and this process was started without a
// launcher. Other commands may run once in the shell of such a job.
void require_launcher(const Launcher& launcher);

// Throws Error(kDevice) with MPI's own text, the operation and the rank, unless code is MPI_SUCCESS.
void mpi_check(int code, const char* operation);

}  // namespace simclr
