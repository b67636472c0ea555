#include "src/comm/mpi_session.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "src/comm/shared_memory_space.h"

namespace simclr {
namespace {

int number_in(const GetEnvironment& get, const char* name) {
  const char* text = get(name);
  return text == nullptr ? 0 : std::atoi(text);
}

// How many processes the launcher started as one job, the surest first: Open MPI's mpirun; PMI-1 (Hydra, Cray, Intel
// MPI); PMIx; jsrun; Flux; MVAPICH; HPE PALS.
constexpr const char* kSizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",      "PMIX_SIZE",           "JSM_NAMESPACE_SIZE",
                                  "FLUX_JOB_SIZE",        "MPIRUN_NTASKS", "MV2_COMM_WORLD_SIZE", "PALS_SIZE"};
// The place of this process among them.
constexpr const char* kRanks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",
                                  "JSM_NAMESPACE_RANK",   "FLUX_TASK_RANK", "MPIRUN_RANK",
                                  "MV2_COMM_WORLD_RANK",  "PALS_RANKID"};
// The processes of this host; some launchers name no more (PALS).
constexpr const char* kLocalSizes[] = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"};

// nullptr: none of them is set.
const char* first_set(const GetEnvironment& get, std::span<const char* const> names) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const char* name) { return get(name) != nullptr; });
  return found == names.end() ? nullptr : *found;
}

int largest_number(const GetEnvironment& get, std::span<const char* const> names) {
  int largest = 0;
  for (const char* name : names) largest = std::max(largest, number_in(get, name));
  return largest;
}

}  // namespace

Launcher read_launcher(const GetEnvironment& get) {
  Launcher launcher;
  const char *size = first_set(get, kSizes), *rank = first_set(get, kRanks);
  launcher.present = size != nullptr || rank != nullptr || get("MPI_LOCALRANKID") != nullptr;
  if (size != nullptr) launcher.ranks = number_in(get, size);
  // Slurm sets it in the steps of srun alone; below mpirun it counts mpirun's own helpers, so it comes last.
  if (launcher.ranks == 0) launcher.ranks = number_in(get, "SLURM_STEP_NUM_TASKS");
  if (launcher.ranks == 0)
    launcher.ranks_at_least =
        std::max(rank == nullptr ? 0 : number_in(get, rank) + 1, largest_number(get, kLocalSizes));
  // In the batch script's own shell: nothing has started this process as one of them, or srun has without saying so.
  if (!launcher.present && launcher.ranks == 0) launcher.job_tasks = number_in(get, "SLURM_NTASKS");
  if (rank == nullptr) rank = "SLURM_PROCID";
  launcher.rank = launcher.ranks > 1 ? number_in(get, rank) : 0;
  const bool by_mpirun = get("OMPI_COMM_WORLD_LOCAL_SIZE") != nullptr;
  // Slurm's is a list like 4(x2),2 with the largest first: the first number.
  launcher.local_ranks = number_in(get, by_mpirun ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "SLURM_STEP_TASKS_PER_NODE");
  launcher.local_rank = number_in(get, by_mpirun ? "OMPI_COMM_WORLD_LOCAL_RANK" : "SLURM_LOCALID");
  return launcher;
}

Launcher read_launcher() {
  return read_launcher([](const char* name) { return std::getenv(name); });
}

void require_one_job(const Launcher& launcher, int mpi_size) {
  const bool exact = launcher.ranks > 0;
  if (exact ? launcher.ranks == mpi_size : launcher.ranks_at_least <= mpi_size) return;
  fail(ExitCode::kDevice,
       "the launcher started {}{} processes, but MPI sees {}: they would train apart; start with the mpirun of the MPI "
       "that the program was built with, or with srun --mpi=pmix",
       exact ? "" : "at least ", exact ? launcher.ranks : launcher.ranks_at_least, mpi_size);
}

void require_launcher(const Launcher& launcher) {
  if (launcher.job_tasks <= 1) return;
  fail(ExitCode::kDevice,
       "Slurm's job has {} tasks (SLURM_NTASKS), but no launcher that MPI knows started this process, and MPI sees 1: "
       "each task would train apart; start with srun --mpi=pmix or with mpirun, or ask Slurm for --ntasks=1 to train "
       "in one process",
       launcher.job_tasks);
}

void mpi_check(int code, const char* operation) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0, rank = -1;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) rank = -1;
  fail(ExitCode::kDevice, "{} failed on rank {}: {} (code {}); look for an earlier error of another rank", operation,
       rank, std::string(text.data(), length), code);
}

MpiSession::MpiSession() {
  const Launcher launcher = read_launcher();
  if (!launcher.present) {
    require_one_job(launcher, 1);
    return;
  }
  check_shared_memory(launcher);
  int provided = MPI_THREAD_SINGLE;
  mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  uses_mpi_ = true;
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  if (provided < MPI_THREAD_FUNNELED)
    fail(ExitCode::kDevice, "this MPI has no support for threads (MPI_THREAD_FUNNELED); use a build of it that has");
  require_one_job(launcher, size_);
}

std::string MpiSession::library_version() const {
  if (!uses_mpi_) return "none";
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  mpi_check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string version(text.data(), length);
  return version.substr(0, version.find_first_of(",\n"));
}

void MpiSession::finish() {
  if (!uses_mpi_ || finished_) return;
  finished_ = true;
  mpi_check(MPI_Finalize(), "MPI_Finalize");
}

void MpiSession::abort_all(ExitCode code) noexcept {
  const int number = code == ExitCode::kDone ? static_cast<int>(ExitCode::kOther) : static_cast<int>(code);
  if (uses_mpi_ && !finished_) MPI_Abort(MPI_COMM_WORLD, number);
  std::_Exit(number);
}

}  // namespace simclr
