// The ends of a Runtime. In order: everything durable, a barrier, NCCL closed, MPI_Finalize. By force: the reason once,
// then MPI_Abort. Any resource may be missing when an error comes early.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/runtime/runtime.h"

namespace simclr {
namespace {

// For the rank that reports: MPI_Abort would end it while it writes.
constexpr std::chrono::seconds kReportGrace(2);

RunState state_of(ExitCode code) {
  return code == ExitCode::kDone      ? RunState::kFinished
         : code == ExitCode::kStopped ? RunState::kStopped
                                      : RunState::kFailed;
}

bool is_agreed(const std::exception_ptr& caught) {
  try {
    std::rethrow_exception(caught);
  } catch (const AgreedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Several faults of one configuration come as several lines; each is a message of its own.
void log_lines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    log_error("{}", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

RunStatus Runtime::final_status(ExitCode code, const std::string& reason) const {
  RunStatus status = status_;
  status.state = state_of(code);
  status.exit_code = code;
  status.reason = reason;
  return status;
}

// An error that only this rank has: with its name where there are several.
std::string Runtime::name_rank(const std::string& reason) const {
  if (!mpi_ || mpi_->size() == 1) return reason;
  return fmt::format("rank {} ({}): {}", mpi_->rank(), status_.host.empty() ? host_name() : status_.host, reason);
}

ExitCode Runtime::shut_down(ExitCode code, const std::string& reason) {
  if (watchdog_) watchdog_->leave_start();
  agree_on(host(), [&] {
    if (is_first() && status_folder_) write_status_file(*status_folder_, final_status(code, reason));
    flush_log();
  });
  finalize();
  return code;
}

ExitCode Runtime::shut_down_after_error(const std::exception_ptr& caught) noexcept {
  ExitCode code = ExitCode::kOther;
  if (watchdog_) watchdog_->leave_start();
  try {
    const bool agreed = is_agreed(caught);
    const Error error = as_error(caught);
    code = error.code() == ExitCode::kDone ? ExitCode::kOther : error.code();
    const bool reports = agreed ? !mpi_ || is_first() : !watchdog_ || watchdog_->claim_report();
    if (reports) report_error(error.what(), code, agreed);
    try {
      flush_log();
    } catch (const Error& flush_error) {
      const bool reported = std::string_view(error.what()).find(flush_error.what()) != std::string_view::npos;
      if (reports && !reported) log_error("{}", flush_error.what());
    }
    if (!agreed) {
      if (!reports) std::this_thread::sleep_for(kReportGrace);
      abort_process(code);
    }
    finalize();
    return code;
  } catch (...) {  // reporting the reason has failed; the exit code still carries it
    abort_process(code);
  }
}

void Runtime::report_error(const std::string& reason, ExitCode code, bool agreed) const {
  rewrite_console_line("");
  const std::string text = agreed ? reason : name_rank(reason);
  // train.log belongs to rank 0; another rank writes to the console alone.
  !mpi_ || is_first() ? log_lines(text) : log_last_words(text);
  if (status_folder_ && !try_write_status_file(*status_folder_, final_status(code, reason)))
    log_error("status.json could not be written in {}", status_folder_->string());
}

void Runtime::abort_all_ranks(const Error& error) noexcept {
  shut_down_after_error(std::make_exception_ptr(error));  // does not return: no other rank has thrown it
  abort_process(error.code());
}

void Runtime::finalize() {
  if (bootstrap_) host().barrier();
  close_nccl();
  if (watchdog_) watchdog_->begin_shutdown();
  if (mpi_) mpi_->finish();
  if (watchdog_) watchdog_->stop();
}

// NCCL closes a communicator on all ranks together, so while they still watch each other.
void Runtime::close_nccl() {
  if (!nccl_) return;
  if (watchdog_) watchdog_->watch(nullptr);
  staged_.reset();
  nccl_.reset();
}

// The reason is out already, or another rank reports it.
void Runtime::abort_process(ExitCode code) noexcept {
  if (mpi_) mpi_->abort_all(code);
  std::_Exit(static_cast<int>(code));
}

}  // namespace simclr
