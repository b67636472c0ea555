#include "src/train/journal.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/config/faults.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPairs = 6, kSide = 64;  // shown in the report; pixels
constexpr int64_t kMostBytes = int64_t{16} << 20;

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

// What the report in this folder shows; nothing where there is none.
ReportParts earlier_parts(const fs::path& folder) {
  const fs::path path = folder / Journal::kReportName;
  if (!fs::is_regular_file(path)) return {};
  return parts_of(read_file(path, kMostBytes));
}

// YAML as Markdown shows it: an indented block is code.
std::string as_code(const std::string& yaml) {
  std::string code = "    ";
  for (const char c : yaml) {
    code += c;
    if (c == '\n') code += "    ";
  }
  return code;
}

}  // namespace

Journal::Journal(const JournalStart& start)
    : folder_(start.folder),
      settings_(start.settings),
      total_steps_(start.total_steps),
      report_(start.settings.log.report),
      history_(start.settings.train.global_batch) {
  if (report_ && start.first_step > 0) {
    history_.add_file(folder_ / "metrics.jsonl");
    parts_ = earlier_parts(folder_);
  }
  if (start.settings.log.tensorboard) {
    events_.emplace(folder_, start.first_step);
    events_->add_text(start.first_step, "config", as_code(print_config(start.settings)));
  }
  const int64_t side = shown_side(start.settings.data.image_size);
  // The images of the first step, also where the run goes on: the data are the same.
  if (events_) {
    const auto pairs = draw_pairs(start.train_set, start.settings, 0, kPairs, side);
    add_grid(start.first_step, "augmented pairs", rows_of(pairs));
  }
  if (report_) {
    parts_.pairs = pairs_part(draw_pairs(start.train_set, start.settings, 0, kPairs, kSide));
    parts_.facts = facts_part(start.facts);
    write_report("running", start.first_step);
  }
}

void Journal::add_line(const std::string& line, Point point) {
  if (report_) history_.add_line(line);
  if (events_ && point == Point::kReportAndTensorBoard) events_->add_metrics(line);
}

void Journal::add_evaluation(const EvaluationFeatures& features, const Beat& beat) {
  if (!report_ && !events_) return;
  EvaluationView view = view_evaluation(features, beat);
  parts_.evaluation = std::move(view.html);
  if (events_ && !view.rows.empty()) add_grid(features.step, "nearest neighbors", view.rows);
}

void Journal::add_grid(int64_t step, const std::string& tag, const std::vector<std::vector<RgbImage>>& rows) {
  const RgbImage grid = grid_of(rows);
  events_->add_image(step, tag, {.png = encode_png(grid), .height = grid.height, .width = grid.width});
}

void Journal::write_report(const std::string& state, int64_t step) {
  if (!report_) return;
  write_file_durably(folder_ / kReportName, render({.name = settings_.run.name,
                                                    .state = state,
                                                    .step = step,
                                                    .total_steps = total_steps_,
                                                    .time = now(),
                                                    .history = history_,
                                                    .config_yaml = print_config(settings_),
                                                    .parts = parts_}));
}

void Journal::sync() {
  if (events_) events_->sync();
}

std::string rewrite_report(const fs::path& folder) {
  const Settings settings = load_settings((folder / "config.yaml").string());
  RunHistory history(settings.train.global_batch);
  history.add_file(folder / "metrics.jsonl");
  const nlohmann::json status =
      nlohmann::json::parse(read_file(folder / "status.json", kMostBytes), nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* key) {
    return status.is_object() && status.contains(key) && status[key].is_string() ? status[key].get<std::string>() : "";
  };
  const std::string reason = text("reason");
  int64_t step = 0;
  if (const auto loss = history.curves().find("loss"); loss != history.curves().end())
    step = static_cast<int64_t>(loss->second.last_step());
  const ReportParts parts = earlier_parts(folder);
  const fs::path path = folder / Journal::kReportName;
  write_file_durably(path, render({.name = settings.run.name,
                                   .state = text("state") + (reason.empty() ? "" : ": " + reason),
                                   .step = step,
                                   .total_steps = 0,
                                   .time = now(),
                                   .history = history,
                                   .config_yaml = print_config(settings),
                                   .parts = parts}));
  return fmt::format("{}: curves up to step {}{}\n", shown_path(path.string()), step,
                     parts.evaluation.empty() ? "; no images of an evaluation, since the run has none"
                                              : ", images as of the last evaluation");
}

}  // namespace simclr
