#include "src/train/run.h"

#include <optional>
#include <span>

#include "src/augment/make_sources.h"
#include "src/augment/normalization.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/comm/make_collectives.h"
#include "src/comm/stop_signals.h"
#include "src/config/key_table.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/config/validator.h"
#include "src/device/processor.h"
#include "src/report/report_file.h"
#include "src/train/memory_check.h"
#include "src/train/memory_need.h"
#include "src/train/set_up.h"
#include "src/train/start_block.h"
#include "src/train/trainer.h"

namespace simclr {
namespace {

// A killed run's last rank may hold its folder for a moment when the next one starts.
constexpr double kLockPatienceS = 5;

// The models of what computes: bits are promised on one. The host's belongs to it on a GPU too: it draws the initial
// weights and the views.
std::string processor_of(const Context& context) {
  return context.device().is_cpu() ? processor_model() : context.device().model() + "; " + processor_model();
}

// Settings that all ranks agree on. Any rank may fail to read its file; then all end with its reason.
Settings agree_on_settings(const CommandLine& line, RunHandles& run) {
  require_equal(*run.bootstrap, ExitCode::kDevice, "program version", kProgramVersion, "start one build on all hosts");
  const Settings settings = agree_on(*run.bootstrap, [&] {
    KeyOrigins origins;
    Settings s = load_settings(line.source.config, line.source.overrides, &origins);
    validate_ranks(s, run.session->size(), origins);
    return s;
  });
  agree_on(*run.bootstrap, [&, rank_0 = broadcast_text(*run.bootstrap, print_config(settings))] {
    const Settings other = settings_from_string(rank_0, "the configuration of rank 0");
    for (const Key& key : all_keys()) {  // all of them: how often to save, say, must not differ either
      if (key.print(settings) == key.print(other)) continue;
      fail(ExitCode::kUsage, "{} is {} here and {} on rank 0; give every rank the same file and the same --set",
           key.path, key.print(settings), key.print(other));
    }
  });
  run.bootstrap = make_collectives(*run.session, settings.train.reduction, &run.heartbeat);
  return settings;
}

// For status.json, should the start be stopped before it has looked into a checkpoint: as far as file names tell.
void tell_where_it_stands(const std::filesystem::path& folder, RunHandles& run) {
  const auto newest = CheckpointStore(folder / "checkpoints", 1).newest_name();
  if (!newest) return;
  run.heartbeat.beat(newest->first, Phase::kStarting);
  run.watchdog->set_checkpoint("checkpoints/" + newest->second.filename().string());
}

// The run folder with its log, the watchdog, config.yaml and status.json.
std::filesystem::path open_run_folder(const CommandLine& line, const Settings& settings, const Topology& topology,
                                      RunHandles& run) {
  const std::filesystem::path folder = run_folder(line, settings);
  const bool first = topology.rank == 0;
  agree_on(*run.bootstrap, [&] {
    if (!first) return;
    make_directories(folder);
    run.folder_lock = std::make_unique<FolderLock>(folder, kLockPatienceS, [&] { run.heartbeat.beat(); });
    if (!run.folder_lock->warning().empty()) log_warning("{}", run.folder_lock->warning());
    // What write_file_durably() and DurableFile write right in this folder.
    for (const char* name :
         {"status.json", "config.yaml", "metrics.jsonl", "best.safetensors", kReportName, StepProfile::kTableName})
      for (const auto& left : remove_temporaries_of(folder / name))
        log_warning("removed {}, left by an ended process", left);
  });
  agree_on(*run.bootstrap, [&] { open_log_file(folder); });
  run.status = {.ranks = topology.size, .rank = topology.rank, .host = topology.host()};
  auto board = make_heartbeat_board(*run.bootstrap, topology.nodes, folder);  // watched by the watchdog of the start
  run.watchdog = std::make_unique<Watchdog>(
      run.heartbeat, std::move(board),
      Watchdog::Options{.timeout_s = settings.train.timeout_s, .run_folder = folder, .hosts = topology.hosts});
  agree_on(*run.bootstrap, [&] {
    if (first && line.resume == "auto") tell_where_it_stands(folder, run);
  });
  return folder;
}

CheckpointHeader make_header(const Parts& parts, const Topology& topology) {
  std::map<std::string, std::string> environment = {{"program", kProgramVersion},
                                                    {"libraries", parts.context.library_version()},
                                                    {"processor", processor_of(parts.context)},
                                                    {"data_sha256", parts.data_sha256},
                                                    {"ranks", fmt::format("{}", topology.size)},
                                                    {"host", topology.host()},
                                                    {kPlansKey, parts.model.describe_plans()},
                                                    {kNormalizationKey, print_normalization(parts.view)}};
  return {.config_yaml = print_config(parts.settings),
          .config_hash = config_hash(parts.settings),
          .environment = std::move(environment)};
}

// The plans of the run that this one goes on from, on rank 0: with them its bits go on.
std::optional<RecordedPlans> plans_of_checkpoint(const std::filesystem::path& folder, const CommandLine& line,
                                                 const Settings& settings, const Site& site, const Beat& beat) {
  return agree_on(site.host, [&]() -> std::optional<RecordedPlans> {
    if (site.host.rank() != 0 || line.dry_run) return std::nullopt;
    const CheckpointStore store(folder / "checkpoints", settings.checkpoint.keep, beat);
    const ResumePoint point = store.resolve(line.resume);
    return point.path ? std::optional(recorded_plans(point.header, settings)) : std::nullopt;
  });
}

// A mistyped model.init_from is told before the data set is read, which may take minutes. Whether its tensors fit is
// seen when the network is there. A run that goes on from a checkpoint does not need the file.
void look_for_start_weights(const std::filesystem::path& folder, const CommandLine& line, const Settings& settings,
                            Collectives& ranks, const Beat& beat) {
  agree_on(ranks, [&] {
    if (ranks.rank() != 0 || settings.model.init_from.empty()) return;
    const bool goes_on =
        !line.dry_run &&
        CheckpointStore(folder / "checkpoints", settings.checkpoint.keep, beat).resolve(line.resume).path.has_value();
    if (goes_on) return;
    try {
      const SafetensorsFile file(settings.model.init_from);
    } catch (const Error& error) {
      fail(error.code(), "model.init_from: {}; name another file", error.what());
    }
  });
}

// An error of this rank alone is told before anything is destroyed: to give memory of a GPU back is to wait for what is
// queued there, and that may wait for ranks that wait for this one.
template <typename Work>
ExitCode or_end_all_ranks(RunHandles& run, Work&& work) {
  try {
    return work();
  } catch (const AgreedError&) {
    throw;
  } catch (...) {
    const Error error = as_error(std::current_exception());
    end_all_ranks(run.way(), Error(error.code(), fmt::format("after step {}: {}", run.status.step, error.what())));
  }
}

// Where everything is, and what comes next: `evaluate` where there are labels for it.
void log_end(const RunHandles& run, const Settings& settings, bool labeled, int64_t step) {
  log_final(fmt::format("finished after step {} in {}: {}{}", step,
                        format_duration(monotonic_seconds() - run.started_s),
                        (run.run_folder / run.status.checkpoint).string(),
                        settings.log.report ? " and " + (run.run_folder / kReportName).string() : ""));
  const std::string folder = run.run_folder.string();
  log_final(labeled ? fmt::format("next: simclr_train evaluate {}", folder)
                    : fmt::format("next: simclr_train export {} --output encoder.safetensors", folder));
}

MetricsFile open_metrics(const std::filesystem::path& folder, int64_t step) {
  const auto path = folder / "metrics.jsonl";
  return step == 0 ? MetricsFile::begin(path) : MetricsFile::continue_after(path, step);
}

}  // namespace

Collectives& RunHandles::host() const {
  return staged ? static_cast<Collectives&>(*staged) : *bootstrap;
}

Site RunHandles::site() const {
  return {.context = *context, .collectives = nccl ? static_cast<Collectives&>(*nccl) : *bootstrap, .host = host()};
}

WayOut RunHandles::way() {
  return {.session = session,
          .collectives = bootstrap ? &host() : nullptr,
          .watchdog = watchdog.get(),
          .run_folder = run_folder,
          .status = status,
          .close = [this] {
            if (!nccl) return;
            if (watchdog) watchdog->watch(nullptr);
            staged.reset();
            nccl.reset();  // NCCL closes a communicator on all ranks together
          }};
}

ExitCode train(const CommandLine& line, RunHandles& run) {
  if (!line.dry_run && !line.print_config) handle_notices();
  const Topology topology = discover_topology(*run.bootstrap);
  watch_the_start(topology, run);
  const Settings given = agree_on_settings(line, run);
  const bool first = topology.rank == 0;
  if (line.print_config) {
    agree_on(*run.bootstrap, [&] {
      if (first) print_out(print_config(given));
    });
    return leave_in_order(run.way(), ExitCode::kDone);
  }
  const DeviceDecision decision = choose_device(given, topology, *run.bootstrap);
  if (decision.cuda && line.profile_steps > 0) {
    throw AgreedError(ExitCode::kUsage,
                      "--profile: measures the ops of the CPU, and this run computes on a GPU; leave it out and use "
                      "`nsys profile`, or write --set run.device=cpu");
  }
  const Settings settings = resolve_for_device(given, decision.cuda);
  const std::filesystem::path folder = line.dry_run ? "" : open_run_folder(line, settings, topology, run);
  run.start_deadline.reset();
  const Beat beat = [&] { run.heartbeat.beat(); };
  look_for_start_weights(folder, line, settings, *run.bootstrap, beat);
  set_up_device(decision, settings, topology, run);
  std::optional<StepProfile> profile;
  if (line.profile_steps > 0) profile.emplace(line.profile_steps, run.site(), folder);
  const Site site = profile ? profile->site() : run.site();
  if (const auto warning = binding_warning(topology, settings.run.threads); warning && first)
    log_warning("{}", *warning);
  if (settings.train.reduction == Reduction::kOrdered) {
    require_equal(site.host, ExitCode::kDevice, "processor", processor_of(site.context),
                  "the bits of a result depend on it: use hosts of one kind, or train.reduction: fastest");
    require_equal(site.host, ExitCode::kDevice, "libraries", site.context.library_version() + nccl_version(),
                  "the bits of a result depend on them: use one image on all hosts, or train.reduction: fastest");
  }
  Parts parts(settings, topology, site, beat, plans_of_checkpoint(folder, line, settings, site, beat));
  beat();
  if (!site.context.device().is_cpu()) {
    require_equal(site.host, ExitCode::kDevice, "the choice of cuDNN plans", parts.model.describe_plans(),
                  "use GPUs of one model and one version of cuDNN on all hosts");
  }
  const std::vector<std::string> facts =
      describe_start({.parts = parts, .topology = topology, .mpi_version = run.session->library_version()});
  if (first) {
    if (line.dry_run) {
      for (const auto& text : describe_parameters(parts.model)) log_info("{}", text);
    }
    for (const auto& text : facts) log_info("{}", text);
    if (line.dry_run) log_info("{}", describe_memory(parts, topology));
    if (!folder.empty()) log_info("run folder: {}", folder.string());
  }
  if (!line.dry_run) {
    require_memory(parts, topology, site.host);
    handle_stop_signals();
  }

  StateIo state(CheckpointStore(folder / "checkpoints", settings.checkpoint.keep, beat), make_header(parts, topology),
                parts.model, *parts.optimizer, site, beat);
  if (line.dry_run) {
    if (!settings.model.init_from.empty()) state.start_from(settings.model.init_from);
    return leave_in_order(run.way(), ExitCode::kDone);
  }
  const int64_t first_step = state.resume(line.resume, settings);
  if (first_step == 0 && !settings.model.init_from.empty()) state.start_from(settings.model.init_from);
  require_equal(site.host, ExitCode::kDevice, "the weights before the first step", state.weights_hash(),
                "the hosts compute differently: use hosts of one kind and one build");
  run.run_folder = folder;  // from here on status.json is this run's; a refused start leaves the old one alone
  run.status.step = first_step;
  run.status.checkpoint = state.last_checkpoint();
  run.heartbeat.beat(first_step, Phase::kStarting);
  run.watchdog->set_checkpoint(run.status.checkpoint);

  std::optional<MetricsFile> metrics;
  std::optional<Journal> journal;
  agree_on(site.host, [&] {
    if (!first) return;
    write_status_file(folder, run.status);
    write_file_durably(folder / "config.yaml", print_config(settings));
    metrics.emplace(open_metrics(folder, first_step));
    journal.emplace(JournalStart{.folder = folder,
                                 .settings = settings,
                                 .train_set = *parts.train_set,
                                 .facts = facts,
                                 .first_step = first_step,
                                 .total_steps = parts.total_steps()});
  });
  std::optional<KnnEvaluation> knn;
  if (settings.evaluate.knn.every_epochs > 0) {
    const std::string reason = reason_without_knn(parts);
    if (reason.empty()) {
      knn.emplace(parts, site, beat);
    } else if (first) {
      log_info("k-NN evaluation is off: {}", reason);
    }
  }
  SkippedFiles skipped({parts.train_set.get(), parts.test_set.get(), parts.bank_set.get()});
  const auto loader = make_batch_source(
      site.context, *parts.train_set, *parts.plan, parts.view,
      {.seed = settings.run.seed,
       .first_shard = parts.geometry.first_shard,
       .shard_count = parts.geometry.local_shards,
       .start_step = first_step,
       .end_step = parts.total_steps(),
       .workers = resolve_workers(settings.data.workers, parts.train_set->decodes(), site.context.threads())},
      beat);
  Trainer trainer({.settings = settings,
                   .site = site,
                   .heartbeat = run.heartbeat,
                   .plan = *parts.plan,
                   .loader = *loader,
                   .model = parts.model,
                   .loss = *parts.loss,
                   .optimizer = *parts.optimizer,
                   .schedule = parts.schedule,
                   .state = state,
                   .knn = knn ? &*knn : nullptr,
                   .metrics = metrics ? &*metrics : nullptr,
                   .journal = journal ? &*journal : nullptr,
                   .profile = profile ? &*profile : nullptr,
                   .skipped = skipped.can_have_some() ? &skipped : nullptr,
                   .progress =
                       [&](int64_t step, const std::string& checkpoint) {
                         run.status.step = step;
                         if (checkpoint == run.status.checkpoint) return;
                         run.status.checkpoint = checkpoint;
                         run.watchdog->set_checkpoint(checkpoint);
                         // What a killed run leaves shall tell how far it came.
                         if (first && step < parts.total_steps()) write_status_file(folder, run.status);
                       },
                   .geometry = parts.geometry,
                   .first_step = first_step,
                   .total_steps = parts.total_steps(),
                   .started_s = run.started_s});
  return or_end_all_ranks(run, [&] {
    const TrainOutcome outcome = trainer.run();
    run.heartbeat.beat(outcome.step, Phase::kEnding);
    if (first) log_info("weights sha256: {}", state.weights_hash());
    agree_on(site.host, [&] {
      if (journal) journal->write_report(outcome.stopped ? "stopped: " + outcome.reason : "finished", outcome.step);
    });
    if (!outcome.stopped) {
      if (first) log_end(run, settings, reason_without_knn(parts).empty(), outcome.step);
      return leave_in_order(run.way(), ExitCode::kDone);
    }
    if (first)
      log_final(fmt::format("stopped after step {} ({}); start the same command again to go on", outcome.step,
                            outcome.reason));
    return leave_in_order(run.way(), ExitCode::kStopped, outcome.reason);
  });
}

}  // namespace simclr
