// What a run writes for people's tools beside metrics.jsonl: TensorBoard's event file and report.html. Rank 0's alone;
// changes nothing that training sees.
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
  // Begins the files that the settings ask for. A run that goes on takes over what its earlier report shows; the lines
  // of its metrics.jsonl are those up to first_step by now.
  explicit Journal(const JournalStart& start);

  // A line of metrics.jsonl, just written. Which of the steps are points in TensorBoard is for the caller.
  enum class Point { kReport, kReportAndTensorBoard };
  void add_line(const std::string& line, Point point);
  // In an evaluation: its images, for the next report. beat: while they are made.
  void add_evaluation(const EvaluationFeatures& features, const Beat& beat);
  // The report as it stands. state: "running", "finished", ...; step: steps done.
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
