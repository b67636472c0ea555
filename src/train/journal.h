// TensorBoard's event file and report.html of a run. Rank 0 only; no influence on training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/metrics/event_file.h"
#include "src/report/evaluation_view.h"
#include "src/report/history.h"
#include "src/report/page.h"

namespace simclr {

struct JournalStart {
  std::filesystem::path folder;
  const Settings& settings;
  const Dataset& train_set;
  std::vector<std::string> facts;  // describe_start()
  int64_t first_step = 0, total_steps = 0;
};

// Everything throws Error: kOutput with path and reason, kData for an image that cannot be shown.
class Journal {
 public:
  // Starts the files that the settings ask for. A resumed run keeps the images of its earlier report; its metrics.jsonl
  // must already end at first_step.
  explicit Journal(const JournalStart& start);

  // A new line of metrics.jsonl. The caller decides which steps become points in TensorBoard.
  enum class Point { kReport, kReportAndTensorBoard };
  void add_line(const std::string& line, Point point);
  // The images of an evaluation, for the next report. beat: while they are rendered.
  void add_evaluation(const EvaluationFeatures& features, const Beat& beat);
  // Writes the current report. state: "running", "finished", ...; step: steps done.
  void write_report(const std::string& state, int64_t step);
  void sync();  // the event file, to the disk

  bool has_report() const { return report_; }

 private:
  void add_grid(int64_t step, const std::string& tag, const std::vector<std::vector<RgbImage>>& rows);

  const std::filesystem::path folder_;
  const Settings& settings_;
  const int64_t total_steps_;
  const bool report_;
  std::optional<EventFile> events_;
  RunHistory history_;
  ReportParts parts_;
};

}  // namespace simclr
