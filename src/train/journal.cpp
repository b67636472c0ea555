#include "src/train/journal.h"

#include "src/config/resolved.h"
#include "src/report/report_file.h"

namespace simclr {
namespace {

constexpr int64_t kPairs = 6, kSide = 64;  // shown in the report; pixels

// YAML as Markdown code: an indented block.
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
  // The images of the first step, also in a resumed run: the data set is the same.
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
  write_report_file(folder_, {.name = settings_.run.name,
                              .state = state,
                              .step = step,
                              .total_steps = total_steps_,
                              .time = "",
                              .history = history_,
                              .config_yaml = print_config(settings_),
                              .parts = parts_});
}

void Journal::sync() {
  if (events_) events_->sync();
}

}  // namespace simclr
