#include "src/device/profiler.h"

#include "kernels/common/error.h"
#include "src/base/progress_line.h"

namespace simclr {

void Profiler::begin_step(int64_t number) {
  SIMCLR_CHECK(!recording_, "step {} begins within a step", number);
  steps_.push_back({.number = number, .begin_s = monotonic_seconds(), .end_s = 0});
  for (Row& row : rows_) row.seconds.push_back(0);
  recording_ = true;
}

void Profiler::end_step() {
  SIMCLR_CHECK(recording_ && open_.empty(), "a step ends with {} open spans", open_.size());
  steps_.back().end_s = monotonic_seconds();
  recording_ = false;
}

size_t Profiler::row_of(const OpName& name) {
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].op == name.op && rows_[i].layer == name.layer) return i;
  Row& row = rows_.emplace_back();
  row.kind = name.kind;
  row.layer = name.layer;
  row.op = name.op;
  row.seconds.resize(steps_.size());
  return rows_.size() - 1;
}

// Takes all memory that the span needs: close() must not fail.
void Profiler::open(const OpName& name, const Work& work) {
  open_.reserve(open_.size() + 1);
  Span& span = spans_.emplace_back();
  span.row = row_of(name);
  span.work = work;
  open_.push_back(spans_.size() - 1);
  span.begin_s = monotonic_seconds();
}

void Profiler::close() noexcept {
  Span& span = spans_[open_.back()];
  open_.pop_back();
  span.end_s = monotonic_seconds();
  const double seconds = span.end_s - span.begin_s;
  if (!open_.empty()) spans_[open_.back()].inner_s += seconds;
  Row& row = rows_[span.row];
  ++row.spans;
  row.work.flops += span.work.flops;
  row.work.bytes += span.work.bytes;
  row.seconds.back() += seconds - span.inner_s;
}

}  // namespace simclr
