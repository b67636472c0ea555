#include "src/base/status_file.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/file.h"

namespace simclr {
namespace {

const char* name_of(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kFinished:
      return "finished";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
  }
  return "failed";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// The main thread and the watchdog's may end a run at the same time; the disk may block the one that writes.
constexpr std::chrono::seconds kPatience(3);
std::timed_mutex one_writer;
std::mutex ended_mutex;
std::set<std::filesystem::path> ended;  // run folders of this process that have their last word

bool is_too_late(const std::filesystem::path& run_folder, RunState state) {
  const std::lock_guard lock(ended_mutex);
  if (state == RunState::kRunning) return ended.contains(run_folder);
  ended.insert(run_folder);
  return false;
}

}  // namespace

void write_status_file(const std::filesystem::path& run_folder, const RunStatus& status) {
  if (is_too_late(run_folder, status.state)) return;
  const std::unique_lock turn(one_writer, kPatience);
  if (is_too_late(run_folder, status.state)) return;
  nlohmann::ordered_json json;
  json["state"] = name_of(status.state);
  json["reason"] = status.reason;
  json["step"] = status.step;
  json["checkpoint"] = status.checkpoint;
  // null while there is none: a 0 could be read as success.
  json["exit_code"] = nullptr;
  if (status.state != RunState::kRunning) json["exit_code"] = static_cast<int>(status.exit_code);
  json["time"] = utc_now();
  json["ranks"] = status.ranks;
  json["rank"] = status.rank;
  json["host"] = status.host;
  json["pid"] = ::getpid();
  // A path or a library's message need not be UTF-8; JSON must be.
  const std::string text = json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
  write_file_durably(run_folder / "status.json", text + "\n");
}

bool try_write_status_file(const std::filesystem::path& run_folder, const RunStatus& status) noexcept {
  try {
    write_status_file(run_folder, status);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace simclr
