#include "src/comm/mpi_session.h"

#include <mpi.h>

#include <array>
#include <cstdlib>

#include "src/comm/shared_memory_room.h"

namespace simclr {
namespace {

int number_in(const GetEnvironment& get, const char* name) {
  const char* text = get(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

Launcher read_launcher(const GetEnvironment& get) {
  Launcher launcher;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"})
    launcher.present = launcher.present || get(name) != nullptr;
  launcher.ranks = number_in(get, "OMPI_COMM_WORLD_SIZE");
  if (launcher.ranks == 0) launcher.ranks = number_in(get, "PMI_SIZE");
  // Slurm sets it in the steps of srun alone; below mpirun it counts mpirun's own helpers, so it comes last.
  if (launcher.ranks == 0) launcher.ranks = number_in(get, "SLURM_STEP_NUM_TASKS");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (get(name) == nullptr) continue;
    launcher.rank = launcher.ranks > 1 ? number_in(get, name) : 0;
    break;
  }
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
  if (launcher.ranks == 0 || launcher.ranks == mpi_size) return;
  fail(ExitCode::kDevice,
       "the launcher started {} processes, but MPI sees {}: they would train apart; start with the mpirun of the MPI "
       "that "
       "the program was built with, or with srun --mpi=pmix",
       launcher.ranks, mpi_size);
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
