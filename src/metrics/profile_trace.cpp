#include "src/metrics/profile_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/common/error.h"

namespace simclr {
namespace {

using Json = nlohmann::ordered_json;

Json event(const ProfileFacts& facts, const std::string& name, const std::string& category, double begin_s,
           double seconds) {
  return {{"name", name},         {"cat", category},   {"ph", "X"}, {"ts", begin_s * 1e6},
          {"dur", seconds * 1e6}, {"pid", facts.rank}, {"tid", 0}};
}

Json name_event(const ProfileFacts& facts, const char* what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", facts.rank}, {"tid", 0}, {"args", {{"name", name}}}};
}

}  // namespace

std::string print_trace(const Profiler& profiler, const ProfileFacts& facts) {
  SIMCLR_CHECK(!profiler.steps().empty(), "a trace without a step");
  const double zero_s = profiler.steps().front().begin_s;
  Json events = Json::array();
  events.push_back(name_event(facts, "process_name", fmt::format("rank {}", facts.rank)));
  events.push_back(name_event(facts, "thread_name", "training"));
  for (const Profiler::Step& step : profiler.steps())
    events.push_back(
        event(facts, fmt::format("step {}", step.number), "step", step.begin_s - zero_s, step.end_s - step.begin_s));
  for (const Profiler::Span& span : profiler.spans()) {
    const Profiler::Row& row = profiler.rows()[span.row];
    const double seconds = span.end_s - span.begin_s;
    Json e = event(facts, row.layer + " " + row.op, kind_name(row.kind), span.begin_s - zero_s, seconds);
    Json& args = e["args"];
    args = {{"self_us", (seconds - span.inner_s) * 1e6}};
    if (span.work.flops > 0) args["GFLOP"] = span.work.flops * 1e-9;
    if (span.work.bytes > 0) args["MB"] = span.work.bytes * 1e-6;
    events.push_back(std::move(e));
  }
  const Json trace = {{"displayTimeUnit", "ms"},
                      {"otherData",
                       {{"rank", facts.rank},
                        {"ranks", facts.ranks},
                        {"threads", facts.threads},
                        {"peak_GFLOP_per_s", facts.peak.flops_per_s * 1e-9},
                        {"peak_GB_per_s", facts.peak.bytes_per_s * 1e-9}}},
                      {"traceEvents", events}};
  return trace.dump() + "\n";
}

}  // namespace simclr
