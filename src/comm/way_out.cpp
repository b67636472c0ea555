#include "src/comm/way_out.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/topology.h"

namespace simclr {
namespace {

RunState state_of(ExitCode code) {
  return code == ExitCode::kDone      ? RunState::kFinished
         : code == ExitCode::kStopped ? RunState::kStopped
                                      : RunState::kFailed;
}

RunStatus final_status(const WayOut& way, ExitCode code, const std::string& reason) {
  RunStatus status = way.status;
  status.state = state_of(code);
  status.exit_code = code;
  status.reason = reason;
  return status;
}

// Several faults of one configuration come as several lines; each is a message of its own.
void log_lines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    log_error("{}", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// An error that only this rank has: with its name where there are several.
std::string name_rank(const WayOut& way, const std::string& reason) {
  if (way.session == nullptr || way.session->size() == 1) return reason;
  const std::string host = way.status.host.empty() ? host_name() : way.status.host;
  return fmt::format("rank {} ({}): {}", way.session->rank(), host, reason);
}

// The last act of an orderly end: barrier, MPI_Finalize.
void finish(const WayOut& way) {
  if (way.collectives != nullptr) way.collectives->barrier();
  if (way.close) way.close();
  if (way.watchdog != nullptr) way.watchdog->begin_leaving();
  if (way.session != nullptr) way.session->finish();
  if (way.watchdog != nullptr) way.watchdog->stop();
}

// Ends all ranks; the reason is out already, or will be printed by another rank.
[[noreturn]] void end_by_force(const WayOut& way, ExitCode code) noexcept {
  if (way.session != nullptr) way.session->abort_all(code);
  std::_Exit(static_cast<int>(code));
}

}  // namespace

ExitCode leave_in_order(const WayOut& way, ExitCode code, const std::string& reason) {
  const bool first = way.session == nullptr || way.session->rank() == 0;
  const auto make_durable = [&] {
    if (first && !way.run_folder.empty()) write_status_file(way.run_folder, final_status(way, code, reason));
    flush_log();
  };
  if (way.collectives != nullptr)
    agree_on(*way.collectives, make_durable);
  else
    make_durable();
  finish(way);
  return code;
}

ExitCode leave_after_error(const WayOut& way, const std::exception_ptr& caught) noexcept {
  ExitCode code = ExitCode::kOther;
  try {
    bool agreed = false;
    try {
      std::rethrow_exception(caught);
    } catch (const AgreedError&) {
      agreed = true;
    } catch (...) {
    }
    const Error error = as_error(caught);
    code = error.code() == ExitCode::kDone ? ExitCode::kOther : error.code();
    const int rank = way.session == nullptr ? 0 : way.session->rank();
    const bool speak = agreed ? rank == 0 : way.watchdog == nullptr || way.watchdog->claim_report();
    if (speak) {
      rewrite_console_line("");
      const std::string text = agreed ? error.what() : name_rank(way, error.what());
      // train.log is rank 0's file; another rank writes past its log.
      rank == 0 ? log_lines(text) : log_last_words(text);
      if (!way.run_folder.empty() && !try_write_status_file(way.run_folder, final_status(way, code, error.what())))
        log_error("status.json could not be written in {}", way.run_folder.string());
    }
    try {
      flush_log();
    } catch (const Error& flush_error) {
      const bool said = std::string_view(error.what()).find(flush_error.what()) != std::string_view::npos;
      if (speak && !said) log_error("{}", flush_error.what());
    }
    if (!agreed) {
      // The rank that speaks may still be writing, and MPI_Abort would end it.
      if (!speak) std::this_thread::sleep_for(std::chrono::seconds(2));
      end_by_force(way, code);
    }
    finish(way);
    return code;
  } catch (...) {
    // Saying why has failed; the exit code still tells.
    end_by_force(way, code);
  }
}

void end_all_ranks(const WayOut& way, const Error& error) noexcept {
  leave_after_error(way, std::make_exception_ptr(error));  // does not return: nobody else has thrown it
  end_by_force(way, error.code());
}

}  // namespace simclr
