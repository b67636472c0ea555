#include "src/commands/report.h"

#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/config/config_errors.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/report/history.h"
#include "src/report/report_file.h"

namespace simclr {
namespace {

constexpr int64_t kMostStatusBytes = int64_t{16} << 20;

// "stopped: signal 15 to rank 0", from status.json; "" for a file without it.
std::string state_of_run(const std::filesystem::path& folder) {
  const nlohmann::json status =
      nlohmann::json::parse(read_file(folder / "status.json", kMostStatusBytes), nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* key) {
    return status.is_object() && status.contains(key) && status[key].is_string() ? status[key].get<std::string>() : "";
  };
  const std::string reason = text("reason");
  return text("state") + (reason.empty() ? "" : ": " + reason);
}

}  // namespace

std::string rewrite_report(const std::filesystem::path& folder) {
  const Settings settings = load_settings((folder / "config.yaml").string());
  RunHistory history(settings.train.global_batch);
  history.add_file(folder / "metrics.jsonl");
  const std::string state = state_of_run(folder);
  int64_t step = 0;
  if (const auto loss = history.curves().find("loss"); loss != history.curves().end())
    step = static_cast<int64_t>(loss->second.last_step());
  const ReportParts parts = earlier_parts(folder);
  write_report_file(folder, {.name = settings.run.name,
                             .state = state,
                             .step = step,
                             .total_steps = 0,
                             .time = "",
                             .history = history,
                             .config_yaml = print_config(settings),
                             .parts = parts});
  return fmt::format("{}: curves up to step {}{}\n", shown_path((folder / kReportName).string()), step,
                     parts.evaluation.empty() ? "; no images of an evaluation, since the run has none"
                                              : ", images as of the last evaluation");
}

}  // namespace simclr
