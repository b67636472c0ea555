#include "src/train/start.h"

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/version.h"
#include "src/checkpoint/checkpoint_store.h"
#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/config/key_table.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/config/validator.h"
#include "src/device/processor.h"
#include "src/report/report_file.h"
#include "src/runtime/device_choice.h"
#include "src/train/step_profile.h"

namespace simclr {
namespace {

// Files that write_file_durably() and DurableFile write right in the run folder; a killed run leaves a part of one.
void remove_leftovers(const std::filesystem::path& folder) {
  for (const char* name :
       {"status.json", "config.yaml", "metrics.jsonl", "best.safetensors", kReportName, StepProfile::kTableName})
    for (const auto& left : remove_temporaries_of(folder / name))
      log_warning("removed {}, left by an ended process", left);
}

// For status.json, should the start be stopped before a checkpoint has been read: step and name of the newest file.
void report_resume_point(const std::filesystem::path& folder, Runtime& runtime) {
  const auto newest = CheckpointStore(folder / "checkpoints", 1).newest_name();
  if (!newest) return;
  runtime.heartbeat().beat(newest->first, Phase::kStarting);
  runtime.watchdog().set_checkpoint("checkpoints/" + newest->second.filename().string());
}

ResumePoint find_resume_point(const std::filesystem::path& folder, const CommandLine& line, const Settings& settings,
                              Runtime& runtime) {
  if (line.dry_run) return {};
  return CheckpointStore(folder / "checkpoints", settings.checkpoint.keep, runtime.beat()).resolve(line.resume);
}

}  // namespace

Settings agree_on_settings(const CommandLine& line, Runtime& runtime) {
  Collectives& ranks = runtime.host();
  require_equal(ranks, ExitCode::kDevice, "program version", kProgramVersion, "start one build on all hosts");
  const Settings settings = agree_on(ranks, [&] {
    KeyOrigins origins;
    Settings s = load_settings(line.source.config, line.source.overrides, &origins);
    validate_ranks(s, runtime.size(), origins);
    return s;
  });
  if (ranks.rank() == 0)
    for (const std::string& text : ignored_overrides(line.source.overrides)) log_info("{}", text);
  agree_on(ranks, [&, rank_0 = broadcast_text(ranks, print_config(settings))] {
    const Settings other = settings_from_string(rank_0, "the configuration of rank 0");
    for (const Key& key : all_keys()) {  // all of them: how often to save, say, must not differ either
      if (key.print(settings) == key.print(other)) continue;
      fail(ExitCode::kUsage, "{} is {} here and {} on rank 0; give every rank the same file and the same --set",
           key.path, key.print(settings), key.print(other));
    }
  });
  runtime.use_reduction(settings.train.reduction);
  return settings;
}

DeviceDecision choose_training_device(const CommandLine& line, const Settings& settings, Runtime& runtime) {
  const DeviceDecision decision = choose_device(settings, runtime.topology(), runtime.host());
  if (decision.cuda && line.profile_steps > 0) {
    throw AgreedError(ExitCode::kUsage,
                      "--profile: measures the ops of the CPU, and this run computes on a GPU; leave it out and use "
                      "`nsys profile`, or write --set run.device=cpu");
  }
  return decision;
}

std::filesystem::path open_run_folder(const CommandLine& line, const Settings& settings, Runtime& runtime) {
  const std::filesystem::path folder = run_folder(line, settings);
  agree_on(runtime.host(), [&] {
    if (!runtime.is_first()) return;
    make_directories(folder);
    runtime.lock_folder(folder);
    remove_leftovers(folder);
  });
  agree_on(runtime.host(), [&] { open_log_file(folder); });
  runtime.watch_run(folder, settings.train.timeout_s);
  agree_on(runtime.host(), [&] {
    if (runtime.is_first() && line.resume == "auto") report_resume_point(folder, runtime);
  });
  return folder;
}

void check_start_weights(const std::filesystem::path& folder, const CommandLine& line, const Settings& settings,
                         Runtime& runtime) {
  agree_on(runtime.host(), [&] {
    if (!runtime.is_first() || settings.model.init_from.empty()) return;
    if (find_resume_point(folder, line, settings, runtime).path) return;
    try {
      const SafetensorsFile file(settings.model.init_from);
    } catch (const Error& error) {
      fail(error.code(), "model.init_from: {}; name another file", error.what());
    }
  });
}

std::string processor_of(const Context& context) {
  return context.device().is_cpu() ? processor_model() : context.device().model() + "; " + processor_model();
}

void require_equal_machines(const Settings& settings, Runtime& runtime) {
  if (const auto warning = binding_warning(runtime.topology(), settings.run.threads); warning && runtime.is_first())
    log_warning("{}", *warning);
  if (settings.train.reduction != Reduction::kOrdered) return;
  const RunContext run = runtime.context();
  require_equal(run.host, ExitCode::kDevice, "processor", processor_of(run.context),
                "the bits of a result depend on it: use hosts of one kind, or train.reduction: fastest");
  require_equal(run.host, ExitCode::kDevice, "libraries", run.context.library_version() + nccl_version(),
                "the bits of a result depend on them: use one image on all hosts, or train.reduction: fastest");
}

std::optional<RecordedPlans> plans_of_checkpoint(const std::filesystem::path& folder, const CommandLine& line,
                                                 const Settings& settings, Runtime& runtime) {
  return agree_on(runtime.host(), [&]() -> std::optional<RecordedPlans> {
    if (!runtime.is_first()) return std::nullopt;
    const ResumePoint point = find_resume_point(folder, line, settings, runtime);
    return point.path ? std::optional(recorded_plans(point.header, settings)) : std::nullopt;
  });
}

}  // namespace simclr
