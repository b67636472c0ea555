// The curves of a run, in bounded memory for any number of steps: built from the lines of metrics.jsonl as they are
// written, or from the whole file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace simclr {

struct CurvePoint {
  double step = 0, value = 0;
};

// At most kMostPoints points, each the mean of the same number of consecutive values; when full, neighbors merge.
class Curve {
 public:
  static constexpr size_t kMostPoints = 600;  // about the width of a chart in pixels
  void add(double step, double value);
  std::vector<CurvePoint> points() const;  // the last one may average fewer values
  double last() const { return last_; }
  double last_step() const { return last_step_; }
  int64_t values() const { return values_; }

 private:
  struct Bucket {
    double step_sum = 0, value_sum = 0;
    int64_t count = 0;
  };
  std::vector<Bucket> buckets_;
  int64_t width_ = 1;  // values in a full bucket
  int64_t values_ = 0;
  double last_ = 0, last_step_ = 0;
};

class RunHistory {
 public:
  // global_batch: images per step, for "wait_share", the share of a step spent waiting for images.
  explicit RunHistory(int64_t global_batch) : global_batch_(global_batch) {}

  // Adds a line of metrics.jsonl. Returns false, and adds nothing, for any other text.
  bool add_line(const std::string& line);
  // Adds all lines of the file. Error(kOutput) if it cannot be read.
  void add_file(const std::filesystem::path& path);

  const std::map<std::string, Curve>& curves() const { return curves_; }  // by the names of metrics.jsonl

 private:
  int64_t global_batch_;
  std::map<std::string, Curve> curves_;
};

}  // namespace simclr
