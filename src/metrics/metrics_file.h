// RUN/metrics.jsonl: one JSON object a line, for pandas, jq and bit-exact comparisons. Written by rank 0 only.
//   {"step":12,"epoch":0,"loss":5.4262981414794922,"lr":0.03,"images_per_s":812.0,"data_wait_s":0.001}
// A number that JSON cannot express is null, with its text in a second field: "loss":null,"loss_text":"nan".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file_handle.h"

namespace simclr {

struct StepMetrics {
  int64_t step = 0;   // updates done: 1 in the first line
  int64_t epoch = 0;  // the step's epoch, from 0
  double loss = 0;    // written with 17 significant digits, which read back as the same bits
  double lr = 0;
  double images_per_s = 0;
  double data_wait_s = 0;                                  // time that the step waited for its images
  std::vector<std::pair<std::string, double>> extra = {};  // further fields of the line, e.g. {"knn_top1", 0.52}
};

// The line without its newline.
std::string format_metrics(const StepMetrics& metrics);
// A line for a measurement without a training step, such as the k-NN before the first: {"step":0,"epoch":0,"knn_top1":0.31}.
std::string format_metrics(int64_t step, int64_t epoch, const std::vector<std::pair<std::string, double>>& fields);

// All functions throw Error(kOutput) with the path and the system's reason.
class MetricsFile {
 public:
  // Creates an empty file; replaces an earlier one.
  static MetricsFile begin(const std::filesystem::path& path);

  // Opens the file of a run resumed after `step` for appending: removes lines of later steps and a damaged end (from a
  // crash), so that the file reads as one unbroken run. The file is replaced as a whole or not at all. A damaged line
  // before a line that is kept is an error that names file and line. Creates a missing file.
  static MetricsFile continue_after(const std::filesystem::path& path, int64_t step);

  // Writes a whole line in one call, so that readers of the growing file see whole lines (unless the disk is full).
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
