#include "src/train/set_up.h"

#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/config/enum_names.h"
#include "src/device/choose_device.h"

namespace simclr {

void watch_the_start(const Topology& topology, RunHandles& run) {
  if (topology.nodes > 1) return;
  try {
    run.watchdog = std::make_unique<Watchdog>(
        run.heartbeat, make_shared_memory_board(*run.bootstrap),
        Watchdog::Options{.timeout_s = TrainSettings{}.timeout_s, .run_folder = "", .hosts = topology.hosts});
    run.start_deadline.reset();
  } catch (const AgreedError& e) {
    if (topology.rank == 0) log_warning("{}; the ranks cannot watch each other until the run folder is open", e.what());
  }
}

DeviceDecision choose_device(const Settings& settings, const Topology& topology, Collectives& bootstrap) {
  const DeviceDecision decision = agree_on_device(bootstrap, topology, settings.run.device);
  if (!decision.cuda && settings.run.precision == Precision::kTf32)
    throw AgreedError(
        ExitCode::kUsage,
        "run.precision: tf32, but this run computes on the CPU, which has fp32 and bf16; write one of them");
  if (!decision.cuda && settings.run.precision == Precision::kBf16) {
    agree_on(bootstrap, [] {
      const std::string reason = why_no_bfloat16();
      if (!reason.empty())
        fail(ExitCode::kUsage, "run.precision: bf16, but this run computes on the CPU, and {}; write fp32", reason);
    });
  }
  if (!decision.cuda && settings.loss.products != DataType::kFloat32) {
    throw AgreedError(
        ExitCode::kUsage,
        fmt::format("loss.products: {}, but this run computes on the CPU, which has fp32 only; write fp32",
                    enum_name(settings.loss.products)));
  }
  return decision;
}

void set_up_device(const DeviceDecision& decision, const Settings& settings, const Topology& topology,
                   RunHandles& run) {
  if (topology.rank == 0 && !decision.sentence.empty()) log_info("{}", decision.sentence);
  const int threads = choose_threads(topology, settings.run.threads);
  const Beat beat = [&] { run.heartbeat.beat(); };
  run.context = agree_on(*run.bootstrap, [&] {
    if (decision.cuda) {
      return std::make_unique<Context>(make_cuda_device(
          {.ordinal = decision.ordinal, .threads = threads, .precision = settings.run.precision, .beat = beat}));
    }
    return std::make_unique<Context>(threads, settings.run.precision);
  });
  if (!decision.cuda) return;
  run.nccl = make_nccl_collectives(*run.bootstrap, *run.context, settings.train.reduction, &run.heartbeat);
  run.staged = std::make_unique<StagedCollectives>(*run.nccl, run.context->shared_device(), &run.heartbeat);
  if (run.watchdog) run.watchdog->watch(run.nccl->health());
}

}  // namespace simclr
