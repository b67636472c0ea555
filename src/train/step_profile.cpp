#include "src/train/step_profile.h"

#include <sstream>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/metrics/profile_trace.h"

namespace simclr {
namespace {

MachinePeak measure_together(const RunContext& run) {
  run.host.barrier();
  return measure_machine_peak(std::get<CpuExec>(run.context.exec()));
}

}  // namespace

std::string StepProfile::trace_name(int rank) {
  return fmt::format("trace_rank_{}.json", rank);
}

StepProfile::StepProfile(int64_t steps, const RunContext& run, std::filesystem::path run_folder)
    : steps_(steps),
      run_(run),
      run_folder_(std::move(run_folder)),
      facts_{.rank = run.host.rank(),
             .ranks = run.host.size(),
             .threads = run.context.threads(),
             .peak = measure_together(run)},
      collectives_(run.collectives, profiler_) {
  run_.context.set_profiler(&profiler_);
}

StepProfile::~StepProfile() {
  run_.context.set_profiler(nullptr);
}

RunContext StepProfile::run_context() {
  return {.context = run_.context, .collectives = collectives_, .host = run_.host, .heartbeat = run_.heartbeat};
}

void StepProfile::begin_step(int64_t number) {
  if (written_ || ++seen_ <= kWarmUpSteps) return;
  profiler_.begin_step(number);
}

void StepProfile::end_step() {
  if (!profiler_.recording()) return;
  profiler_.end_step();
  if (std::ssize(profiler_.steps()) == steps_) write();
}

void StepProfile::finish() {
  if (written_) return;
  if (!profiler_.steps().empty()) return write();
  if (facts_.rank == 0)
    log_warning("--profile: no step was measured: the run made {} steps and the first {} are warm-up; run more steps",
                seen_, kWarmUpSteps);
}

void StepProfile::write() {
  written_ = true;
  write_file_durably(run_folder_ / trace_name(facts_.rank), print_trace(profiler_, facts_));
  if (facts_.rank != 0) return;
  const std::string table = print_profile(profiler_, facts_);
  write_file_durably(run_folder_ / kTableName, table);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) log_info("{}", line);
  log_info("profile: {} and {}, which https://ui.perfetto.dev and chrome://tracing open",
           (run_folder_ / kTableName).string(), (run_folder_ / trace_name(0)).string());
}

}  // namespace simclr
