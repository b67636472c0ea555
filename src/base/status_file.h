// RUN_FOLDER/status.json: the record of how a run stands or ended. Exit codes are a convenience next to it, since
// launchers change them. Written by rank 0 at start and end, and by any rank that ends the job by force.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "kernels/common/error.h"

namespace simclr {

enum class RunState { kRunning, kFinished, kStopped, kFailed };

struct RunStatus {
  RunState state = RunState::kRunning;
  std::string reason = {};      // one line; empty while running and when finished
  int64_t step = 0;             // steps done
  std::string checkpoint = {};  // the newest one, relative to the run folder; empty: none
  ExitCode exit_code = ExitCode::kDone;
  int ranks = 1;
  int rank = 0;  // who writes
  std::string host = {};
};

// Replaces status.json durably; adds the time (UTC) and the process id. Error(kOutput). The threads of a process take
// turns, and once one of them has written how the run ended, another one's "running" comes too late and is not written.
void write_status_file(const std::filesystem::path& run_folder, const RunStatus& status);

// The same as a last act from any thread: false instead of an exception.
bool try_write_status_file(const std::filesystem::path& run_folder, const RunStatus& status) noexcept;

}  // namespace simclr
