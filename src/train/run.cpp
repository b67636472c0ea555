#include "src/train/run.h"

#include <optional>

#include "src/augment/make_sources.h"
#include "src/augment/normalization.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/comm/agreement.h"
#include "src/comm/stop_signals.h"
#include "src/config/resolved.h"
#include "src/report/report_file.h"
#include "src/train/memory_check.h"
#include "src/train/memory_need.h"
#include "src/train/resume_check.h"
#include "src/train/start.h"
#include "src/train/start_block.h"
#include "src/train/trainer.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

// The ranks find each other and agree on the settings.
Settings start_ranks(const CommandLine& line, Runtime& runtime) {
  if (!line.dry_run && !line.print_config) install_signal_handlers();
  runtime.discover_ranks();
  runtime.watch_start();
  return agree_on_settings(line, runtime);
}

ExitCode print_settings(const Settings& settings, Runtime& runtime) {
  agree_on(runtime.host(), [&] {
    if (runtime.is_first()) print_out(print_config(settings));
  });
  return runtime.shut_down(ExitCode::kDone);
}

struct OpenedRun {
  Settings settings;  // without an `auto` that is part of the mathematics
  fs::path folder;    // empty: --dry-run
};

// The device, whose choice resolves the settings, and the run folder.
OpenedRun start_device(const CommandLine& line, const Settings& given, Runtime& runtime) {
  const DeviceDecision device = choose_training_device(line, given, runtime);
  const Settings settings = resolve_for_device(given, device.cuda);
  const fs::path folder = line.dry_run ? fs::path() : open_run_folder(line, settings, runtime);
  runtime.end_start();
  check_start_weights(folder, line, settings, runtime);
  runtime.start_device(device, settings);
  return {.settings = settings, .folder = folder};
}

// Null without --profile.
std::unique_ptr<StepProfile> make_profile(const CommandLine& line, const fs::path& folder, Runtime& runtime) {
  if (line.profile_steps <= 0) return nullptr;
  return std::make_unique<StepProfile>(line.profile_steps, runtime.context(), folder);
}

// The same choices on all ranks, the start block on rank 0, and memory for all of it. Returns the start block.
std::vector<std::string> check_setup(const TrainingSetup& setup, const CommandLine& line, const fs::path& folder,
                                     Runtime& runtime) {
  runtime.heartbeat().beat();
  if (!setup.context.device().is_cpu()) {
    require_equal(runtime.host(), ExitCode::kDevice, "the choice of cuDNN plans", setup.model.describe_plans(),
                  "use GPUs of one model and one version of cuDNN on all hosts");
  }
  std::vector<std::string> facts =
      describe_start({.setup = setup, .topology = runtime.topology(), .mpi_version = runtime.mpi().library_version()});
  if (runtime.is_first()) {
    if (line.dry_run) {
      for (const auto& text : describe_parameters(setup.model)) log_info("{}", text);
    }
    for (const auto& text : facts) log_info("{}", text);
    if (line.dry_run) log_info("{}", describe_memory(setup, runtime.topology()));
    if (!folder.empty()) log_info("run folder: {}", folder.string());
  }
  if (!line.dry_run) require_memory(setup, runtime.topology(), runtime.host());
  return facts;
}

CheckpointHeader make_header(const TrainingSetup& setup, const Topology& topology) {
  std::map<std::string, std::string> environment = {{"program", kProgramVersion},
                                                    {"libraries", setup.context.library_version()},
                                                    {"processor", processor_of(setup.context)},
                                                    {kDataKey, setup.data_sha256},
                                                    {"ranks", fmt::format("{}", topology.size)},
                                                    {"host", topology.host()},
                                                    {kPlansKey, setup.model.describe_plans()},
                                                    {kNormalizationKey, print_normalization(setup.view)}};
  return {.config_yaml = print_config(setup.settings),
          .config_hash = config_hash(setup.settings),
          .environment = std::move(environment)};
}

ExitCode end_dry_run(const Settings& settings, StateIo& state, Runtime& runtime) {
  if (!settings.model.init_from.empty()) state.start_from(settings.model.init_from);
  return runtime.shut_down(ExitCode::kDone);
}

// The weights of a checkpoint, of a file or from the seed, the same on all ranks. Returns the steps done.
int64_t load_state(const CommandLine& line, const TrainingSetup& setup, const fs::path& folder, StateIo& state,
                   Runtime& runtime) {
  const Settings& settings = setup.settings;
  const int64_t first_step = state.resume(line.resume, settings);
  if (first_step == 0 && !settings.model.init_from.empty()) state.start_from(settings.model.init_from);
  require_equal(runtime.host(), ExitCode::kDevice, "the weights before the first step", state.weights_hash(),
                "the hosts compute differently: use hosts of one kind and one build");
  runtime.begin_status(folder, first_step, state.last_checkpoint());
  if (first_step >= setup.total_steps() && runtime.is_first())
    log_final(
        fmt::format("nothing left to train: {} is after step {}, and the run ends at step {}; to train longer, raise "
                    "train.epochs or train.max_steps, with resume.allow",
                    state.last_checkpoint(), first_step, setup.total_steps()));
  return first_step;
}

// Null where it is turned off or has no labels.
std::unique_ptr<KnnEvaluation> make_knn(TrainingSetup& setup, const RunContext& run, const Beat& beat) {
  if (setup.settings.evaluate.knn.every_epochs <= 0) return nullptr;
  const std::string reason = reason_without_knn(setup);
  if (reason.empty()) return std::make_unique<KnnEvaluation>(setup, run, beat);
  if (run.host.rank() == 0) log_info("k-NN evaluation is off: {}", reason);
  return nullptr;
}

// What the lines about the steps go into, next to the console. Rank 0's; the others have none.
StepLog::Files open_log_files(const TrainingSetup& setup, const fs::path& folder, const std::vector<std::string>& facts,
                              int64_t first_step, Runtime& runtime) {
  return agree_on(runtime.host(), [&]() -> StepLog::Files {
    if (!runtime.is_first()) return {};
    runtime.write_status();
    write_file_durably(folder / "config.yaml", print_config(setup.settings));
    const fs::path metrics = folder / "metrics.jsonl";
    StepLog::Files files;
    files.metrics.emplace(first_step == 0 ? MetricsFile::begin(metrics)
                                          : MetricsFile::continue_after(metrics, first_step));
    files.journal = std::make_unique<Journal>(JournalStart{.folder = folder,
                                                           .settings = setup.settings,
                                                           .train_set = *setup.train_set,
                                                           .facts = facts,
                                                           .first_step = first_step,
                                                           .total_steps = setup.total_steps()});
    return files;
  });
}

std::unique_ptr<BatchSource> make_loader(const TrainingSetup& setup, int64_t first_step, const Beat& beat) {
  return make_batch_source(setup.context, *setup.train_set, *setup.plan, setup.view,
                           {.seed = setup.settings.run.seed,
                            .first_shard = setup.geometry.first_shard,
                            .shard_count = setup.geometry.local_shards,
                            .start_step = first_step,
                            .end_step = setup.total_steps(),
                            .workers = setup.workers},
                           beat);
}

// A killed run's status.json names its newest checkpoint.
void record(int64_t step, const std::string& checkpoint, const TrainingSetup& setup, Runtime& runtime) {
  if (!runtime.record_progress(step, checkpoint) || !runtime.is_first() || step >= setup.total_steps()) return;
  runtime.write_status();
}

// An error of this rank alone is reported before anything is destroyed: freeing memory of a GPU waits for the work that
// is queued there, and that may wait for ranks that wait for this one.
template <typename Work>
ExitCode abort_on_error(Runtime& runtime, Work&& work) {
  try {
    return work();
  } catch (const AgreedError&) {
    throw;
  } catch (...) {
    const Error error = as_error(std::current_exception());
    runtime.abort_all_ranks(Error(error.code(), fmt::format("after step {}: {}", runtime.status().step, error.what())));
  }
}

// Where the results are, and the command that comes next: `evaluate` where there are labels for it.
void log_end(const TrainingSetup& setup, const fs::path& folder, int64_t step, const Runtime& runtime) {
  log_final(fmt::format("finished after step {} in {}: {}{}", step,
                        format_duration(monotonic_seconds() - runtime.started_s()),
                        (folder / runtime.status().checkpoint).string(),
                        setup.settings.log.report ? " and " + (folder / kReportName).string() : ""));
  log_final(reason_without_knn(setup).empty()
                ? fmt::format("next: simclr_train evaluate {}", folder.string())
                : fmt::format("next: simclr_train export {} --output encoder.safetensors", folder.string()));
}

ExitCode end_run(const TrainOutcome& outcome, const TrainingSetup& setup, const fs::path& folder, StateIo& state,
                 StepLog& log, Runtime& runtime) {
  runtime.heartbeat().beat(outcome.step, Phase::kEnding);
  if (runtime.is_first()) log_info("weights sha256: {}", state.weights_hash());
  agree_on(runtime.host(),
           [&] { log.write_report(outcome.stopped ? "stopped: " + outcome.reason : "finished", outcome.step); });
  if (outcome.stopped) {
    if (runtime.is_first())
      log_final(outcome.step == 0
                    ? fmt::format("stopped before the first step ({}); start the same command again", outcome.reason)
                    : fmt::format("stopped after step {} ({}); start the same command again to continue", outcome.step,
                                  outcome.reason));
    return runtime.shut_down(ExitCode::kStopped, outcome.reason);
  }
  if (runtime.is_first()) log_end(setup, folder, outcome.step, runtime);
  return runtime.shut_down(ExitCode::kDone);
}

}  // namespace

ExitCode train(const CommandLine& line, Runtime& runtime) {
  const Settings given = start_ranks(line, runtime);
  if (line.print_config) return print_settings(given, runtime);
  const auto [settings, folder] = start_device(line, given, runtime);
  const auto profile = make_profile(line, folder, runtime);
  const RunContext run = profile ? profile->run_context() : runtime.context();
  require_equal_machines(settings, runtime);

  const Beat beat = runtime.beat();
  TrainingSetup setup(settings, runtime.topology(), run, beat, plans_of_checkpoint(folder, line, settings, runtime));
  const std::vector<std::string> facts = check_setup(setup, line, folder, runtime);
  StateIo state(CheckpointStore(folder / "checkpoints", settings.checkpoint.keep, beat),
                make_header(setup, runtime.topology()), setup.model, *setup.optimizer, run, beat);
  if (line.dry_run) return end_dry_run(settings, state, runtime);

  const int64_t first_step = load_state(line, setup, folder, state, runtime);
  StepLog log(setup, run, open_log_files(setup, folder, facts, first_step, runtime), first_step);
  const auto knn = make_knn(setup, run, beat);
  SkippedFiles skipped({setup.train_set.get(), setup.test_set.get(), setup.bank_set.get()});
  const auto loader = make_loader(setup, first_step, beat);
  Trainer trainer(setup, run,
                  {.loader = *loader,
                   .state = state,
                   .log = log,
                   .knn = knn.get(),
                   .profile = profile.get(),
                   .skipped = skipped.can_skip() ? &skipped : nullptr,
                   .progress = [&](int64_t step, const std::string& newest) { record(step, newest, setup, runtime); },
                   .first_step = first_step,
                   .started_s = runtime.started_s()});
  return abort_on_error(runtime,
                        [&, &place = folder] { return end_run(trainer.run(), setup, place, state, log, runtime); });
}

}  // namespace simclr
