// The curves of a run, of bounded size however long it is: made from the lines of metrics.jsonl as they are written, or
// from the whole file.
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

// At most kMostPoints points, each the mean of equally many consecutive values; when it is full, neighbors merge.
class Curve {
 public:
  static constexpr size_t kMostPoints = 600;  // as many as a chart has columns of pixels
  void add(double step, double value);
  std::vector<CurvePoint> points() const;  // the last one may be of fewer values
  double last() const { return last_; }
  double last_step() const { return last_step_; }
  int64_t values() const { return values_; }

 private:
  struct Bucket {
    double step_sum = 0, value_sum = 0;
    int64_t count = 0;
  };
  std::vector<Bucket> buckets_;
  int64_t width_ = 1;  // values a bucket
  int64_t values_ = 0;
  double last_ = 0, last_step_ = 0;
};

class RunHistory {
 public:
  // global_batch: images a step, for the share of a step that it waited for its images ("wait_share").
  explicit RunHistory(int64_t global_batch) : global_batch_(global_batch) {}

  // A line of metrics.jsonl. False, and nothing added, for what is no such line.
  bool add_line(const std::string& line);
  // All lines of the file. Error(kOutput) when it cannot be read.
  void add_file(const std::filesystem::path& path);

  const std::map<std::string, Curve>& curves() const { return curves_; }  // by the names of metrics.jsonl

 private:
  int64_t global_batch_;
  std::map<std::string, Curve> curves_;
};

}  // namespace simclr
