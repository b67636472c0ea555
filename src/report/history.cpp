#include "src/report/history.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/base/file.h"

namespace simclr {

void Curve::add(double step, double value) {
  last_ = value;
  last_step_ = step;
  ++values_;
  if (buckets_.empty() || buckets_.back().count == width_) {
    if (buckets_.size() == kMostPoints) {
      for (size_t i = 0; i < kMostPoints / 2; ++i) {
        const Bucket &a = buckets_[2 * i], &b = buckets_[2 * i + 1];
        buckets_[i] = {a.step_sum + b.step_sum, a.value_sum + b.value_sum, a.count + b.count};
      }
      buckets_.resize(kMostPoints / 2);
      width_ *= 2;
    }
    buckets_.emplace_back();
  }
  Bucket& bucket = buckets_.back();
  bucket.step_sum += step;
  bucket.value_sum += value;
  ++bucket.count;
}

std::vector<CurvePoint> Curve::points() const {
  std::vector<CurvePoint> points;
  for (const Bucket& bucket : buckets_) {
    const double count = as_double(bucket.count);
    points.push_back({bucket.step_sum / count, bucket.value_sum / count});
  }
  return points;
}

bool RunHistory::add_line(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) return false;
  const double step = json["step"].get<double>();
  for (const auto& [name, value] : json.items())
    if (name != "step" && value.is_number()) curves_[name].add(step, value.get<double>());
  const auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number() ? json[name].get<double>() : 0;
  };
  // The throughput is a mean over steps; a single wait can be longer than the mean step.
  if (json.contains("data_wait_s") && number("images_per_s") > 0) {
    const double share = number("data_wait_s") * number("images_per_s") / as_double(global_batch_);
    curves_["wait_share"].add(step, std::min(share, 1.0));
  }
  return true;
}

void RunHistory::add_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) fail(ExitCode::kOutput, "cannot open {}: {}; check the path", path.string(), errno_text(errno));
  for (std::string line; std::getline(file, line);) add_line(line);
  if (file.bad()) fail(ExitCode::kOutput, "cannot read {}: {}; check the disk", path.string(), errno_text(errno));
}

}  // namespace simclr
