#include "src/metrics/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The rows by layer, layers in the order of their first rows; collectives, which serve all layers, last.
std::vector<const Profiler::Row*> by_layer(const Profiler& profiler) {
  std::map<std::string, size_t> first;
  std::vector<const Profiler::Row*> rows;
  for (const Profiler::Row& row : profiler.rows()) {
    first.emplace(row.layer, rows.size());
    rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    const bool a_last = a->kind == OpKind::kCollective, b_last = b->kind == OpKind::kCollective;
    return a_last != b_last ? b_last : first.at(a->layer) < first.at(b->layer);
  });
  return rows;
}

// The number, or an empty cell for 0.
std::string number(double value, int decimals) {
  return value > 0 ? fmt::format("{:.{}f}", value, decimals) : "";
}

class Table {
 public:
  Table(const Profiler& profiler, const ProfileFacts& facts)
      : facts_(facts), steps_(as_double(profiler.steps().size())) {
    std::vector<double> whole;
    for (const Profiler::Step& step : profiler.steps()) whole.push_back(step.end_s - step.begin_s);
    step_s_ = median(whole);
    for (const Profiler::Row& row : profiler.rows()) {
      layer_width_ = std::max(layer_width_, row.layer.size());
      op_width_ = std::max(op_width_, row.op.size());
    }
  }

  double step_s() const { return step_s_; }
  std::string head() const {
    return line("layer", "op", "calls", "ms", "share", "GFLOP", "GFLOP/s", "MB", "GB/s", "of peak");
  }
  std::string row(const Profiler::Row& r, double seconds) const {
    const Work work{r.work.flops / steps_, r.work.bytes / steps_};
    // An op below the clock's resolution has no rate.
    const double rate = seconds > 1e-9 ? 1 / seconds : 0;
    const double ceiling_s = std::max(work.flops / facts_.peak.flops_per_s, work.bytes / facts_.peak.bytes_per_s);
    return line(r.layer, r.op, fmt::format("{:.4g}", as_double(r.spans) / steps_), fmt::format("{:.3f}", seconds * 1e3),
                share(seconds), number(work.flops * 1e-9, 3), number(work.flops * rate * 1e-9, 1),
                number(work.bytes * 1e-6, 2), number(work.bytes * rate * 1e-9, 1),
                work.flops + work.bytes > 0 && rate > 0 ? fmt::format("{:.0f} %", 100 * ceiling_s * rate) : "");
  }
  std::string sum(const std::string& name, double seconds) const {
    return line(name, "", "", fmt::format("{:.3f}", seconds * 1e3), share(seconds), "", "", "", "", "");
  }

 private:
  std::string share(double seconds) const { return fmt::format("{:.1f} %", 100 * seconds / step_s_); }
  std::string line(std::string_view layer, std::string_view op, std::string_view calls, std::string_view ms,
                   std::string_view of_step, std::string_view gflop, std::string_view gflops, std::string_view mb,
                   std::string_view gbs, std::string_view of_peak) const {
    std::string text = fmt::format("{:<{}}  {:<{}}  {:>5}  {:>9}  {:>7}  {:>8}  {:>7}  {:>8}  {:>6}  {:>7}", layer,
                                   layer_width_, op, op_width_, calls, ms, of_step, gflop, gflops, mb, gbs, of_peak);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + '\n';
  }

  const ProfileFacts& facts_;
  double steps_ = 0, step_s_ = 0;
  size_t layer_width_ = 22, op_width_ = 2;  // room for the names of the sums
};

}  // namespace

std::string kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::kData:
      return "data";
    case OpKind::kConvolution:
      return "convolution";
    case OpKind::kBatchNorm:
      return "batch norm";
    case OpKind::kElementwise:
      return "elementwise and pooling";
    case OpKind::kMatrixProduct:
      return "projector products";
    case OpKind::kLoss:
      return "loss";
    case OpKind::kCollective:
      return "collectives";
    case OpKind::kOptimizer:
      return "optimizer";
    case OpKind::kOther:
      break;
  }
  return "other";
}

std::string print_profile(const Profiler& profiler, const ProfileFacts& facts) {
  SIMCLR_CHECK(!profiler.steps().empty(), "a profile without a step");
  const auto& steps = profiler.steps();
  const Table table(profiler, facts);
  std::string text = fmt::format(
      "profile of rank {} of {}: the medians of steps {} to {}, {} threads\n"
      "peak of this rank, measured: {:.1f} GFLOP/s (fp32 matrix product), {:.1f} GB/s (read and written)\n\n{}",
      facts.rank, facts.ranks, steps.front().number, steps.back().number, facts.threads, facts.peak.flops_per_s * 1e-9,
      facts.peak.bytes_per_s * 1e-9, table.head());
  double sum_s = 0;
  std::map<OpKind, double> kinds;
  for (const Profiler::Row* row : by_layer(profiler)) {
    const double seconds = median(row->seconds);
    text += table.row(*row, seconds);
    sum_s += seconds;
    kinds[row->kind] += seconds;
  }
  const double between_s = table.step_s() - sum_s;
  text += '\n';
  for (const auto& [kind, seconds] : kinds) text += table.sum(kind_name(kind), seconds);
  text += table.sum("between the rows", between_s);
  text += table.sum("step", table.step_s());
  text += table.sum("outside convolutions", table.step_s() - kinds[OpKind::kConvolution]);
  return text;
}

}  // namespace simclr
