// RUN/metrics.jsonl: one JSON object a line, for pandas, jq and comparisons to the bit. Written by rank 0 alone.
//   {"step":12,"epoch":0,"loss":5.4262981414794922,"lr":0.03,"images_per_s":812.0,"data_wait_s":0.001}
// A number that JSON does not have is null with its name beside it: "loss":null,"loss_text":"nan".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file_handle.h"

namespace simclr {

struct StepMetrics {
  int64_t step = 0;   // updates done, so the first line has 1
  int64_t epoch = 0;  // epoch that the step belongs to, from 0
  double loss = 0;    // 17 significant digits: read back, it has the same bits
  double lr = 0;
  double images_per_s = 0;
  double data_wait_s = 0;                                  // that the step waited for its images
  std::vector<std::pair<std::string, double>> extra = {};  // further fields of the line, e.g. {"knn_top1", 0.52}
};

// The line without its end.
std::string format_metrics(const StepMetrics& metrics);
// A line without a step of its own: {"step":0,"epoch":0,"knn_top1":0.31}, e.g. what is measured before the first step.
std::string format_metrics(int64_t step, int64_t epoch, const std::vector<std::pair<std::string, double>>& fields);

// Everything throws Error(kOutput) with the path and the system's reason.
class MetricsFile {
 public:
  // An empty file; an earlier one of that name is replaced.
  static MetricsFile begin(const std::filesystem::path& path);

  // Goes on with the file of a run resumed after `step`: lines of later steps go, and so does a damaged end, as a crash
  // leaves it; then the file reads as one unbroken run. It is replaced as a whole or not at all. A damaged line with a
  // line of that run behind it is an error that names file and line. No file: an empty one.
  static MetricsFile continue_after(const std::filesystem::path& path, int64_t step);

  // A whole line in one write, so that a reader of the growing file sees whole lines (but for a full disk).
  void append(const std::string& line);
  void sync();  // to the disk; call it before a checkpoint of the same step

  int64_t lines_removed() const { return lines_removed_; }  // by continue_after
  int64_t last_step() const { return last_step_; }          // of the lines kept; -1: none

  MetricsFile(MetricsFile&&) noexcept = default;
  MetricsFile& operator=(MetricsFile&&) = delete;

 private:
  explicit MetricsFile(const std::filesystem::path& path);  // opens for appending

  std::filesystem::path path_;
  FileHandle file_;
  int64_t lines_removed_ = 0;
  int64_t last_step_ = -1;
};

}  // namespace simclr
