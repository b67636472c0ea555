#include "src/train/start_block.h"

#include "kernels/common/numbers.h"
#include "src/base/version.h"
#include "src/checkpoint/safetensors_header.h"
#include "src/comm/nccl_collectives.h"
#include "src/config/enum_names.h"
#include "src/config/resolved.h"
#include "src/device/processor.h"

namespace simclr {
namespace {

std::string promise(const Settings& s, int ranks) {
  if (s.train.reduction == Reduction::kOrdered) {
    return fmt::format(
        "reduction ordered: the same bits for every number of ranks that divides {} shards, and for any number of "
        "threads",
        s.train.shards);
  }
  return fmt::format("reduction fastest: runs on another number of ranks than {} are equal up to rounding", ranks);
}

std::string device_and_precision(bool cpu, Precision precision) {
  if (cpu && precision == Precision::kFp32) return "cpu";
  return fmt::format("{} {}", cpu ? "cpu" : "cuda", enum_name(precision));
}

}  // namespace

std::vector<std::string> describe_parameters(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& p : model.store().parameters())
    lines.push_back(fmt::format("  {} {}", p.name, format_shape(p.shape)));
  return lines;
}

std::vector<std::string> describe_start(const StartFacts& f) {
  const TrainingSetup& p = f.setup;
  const Settings& s = p.settings;
  const bool cpu = p.context.device().is_cpu();
  const auto count = [](int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  return {
      fmt::format("simclr_train {} on {} ({}), {}, {} each", kProgramVersion, count(f.topology.size, "rank"),
                  count(f.topology.nodes, "node"), device_and_precision(cpu, s.run.precision),
                  count(p.context.threads(), "thread")),
      fmt::format("libraries: {}; {}MPI: {}", p.context.library_version(), cpu ? "" : nccl_version() + "; ",
                  f.mpi_version),
      fmt::format("processor: {}{}", cpu ? "" : p.context.device().model() + "; ", processor_model()),
      fmt::format("data: {}, {} training and {} test images, {} per epoch, {} images dropped per epoch",
                  enum_name(s.data.format), p.train_set->count(), p.test_set->count(),
                  count(p.plan->steps_per_epoch(), "step"), p.plan->dropped_per_epoch()),
      fmt::format("network: {}", p.model.describe()),
      fmt::format("convolutions: {}", cpu ? summarize_cpu_plans(p.model.describe_plans()) : "cuDNN plans"),
      fmt::format("loss: {}", p.loss->describe()),
      fmt::format("schedule: {}, warm-up {}, {} with learning rate {:.6g} (base_lr {:.6g}, scaling {})",
                  count(p.total_steps(), "step"), p.schedule.warmup_steps(), enum_name(s.optimizer.type),
                  scaled_learning_rate(s), s.optimizer.base_lr, enum_name(s.optimizer.lr_scaling)),
      fmt::format("step: {} of {}, input [{}, {}, 3, {}, {}], {:.1f} GFLOP on this rank; network, loss and optimizer "
                  "hold {:.0f} MB",
                  count(p.geometry.shards, "shard"), count(p.geometry.images_per_shard, "image"),
                  p.geometry.local_shards, p.geometry.samples(), s.data.image_size, s.data.image_size,
                  p.model.step_flops() * 1e-9, as_double(p.context.allocated_bytes()) * 1e-6),
      promise(s, f.topology.size),
  };
}

}  // namespace simclr
