// Training steps as the trainer takes them, without views, evaluation and files: network, loss, backward, sums over
// ranks, optimizer. For scripts/step_table.py and scripts/scaling_model.py; prints one JSON object. Google Benchmark is
// not used, because the peak memory of a process is that of everything which it has run.
//   [mpirun -np W] step_run REPEATS KEY=VALUE...        keys of a configuration, e.g. model.encoder.depth=18
// With several ranks as many steps again follow with a barrier before each operation, to see what it moves and how
// long it takes without the waiting.
#include <omp.h>

#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/process_memory.h"
#include "bench/run_main.h"
#include "bench/timed_collectives.h"
#include "kernels/common/bfloat16.h"
#include "kernels/optimizer_update/optimizer_update.h"
#include "src/base/print.h"
#include "src/comm/gradient_reducer.h"
#include "src/comm/make_collectives.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/loss/contrastive_loss.h"
#include "src/nn/model.h"
#include "src/optim/gradient_norm.h"
#include "src/optim/optimizer.h"

namespace simclr {
namespace {

constexpr double kLearningRate = 1e-3;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

ShardGeometry make_geometry(const Settings& settings, const Collectives& collectives) {
  const int64_t shards = shard_count(settings, collectives.size()), local = shards / collectives.size();
  return {.shards = shards,
          .local_shards = local,
          .first_shard = collectives.rank() * local,
          .images_per_shard = images_per_shard(settings, collectives.size())};
}

// What Trainer::step() does.
class Step {
 public:
  Step(const Settings& s, Context& context, Collectives& collectives)
      : context_(context),
        geometry_(make_geometry(s, collectives)),
        model_(context, collectives, geometry_, s.model, s.data.image_size, s.run.seed,
               PlanChoices{.algorithm = s.model.convolution, .before = {}}),
        loss_(make_loss(
            context, collectives, s.loss,
            {.batch = s.train.global_batch, .columns = s.model.projector.output, .shards = geometry_.shards})),
        optimizer_(make_optimizer(context, model_.store(), s.optimizer)),
        reducer_(collectives),
        gradient_norm_(context, model_.store()),
        non_finite_(context.allocate_elements<int>(1)) {
    const int64_t columns = s.model.projector.output, size = s.data.image_size;
    images_ = {nullptr, geometry_.local_shards, geometry_.samples(), 3, size, size};
    image_memory_ = context.allocate_elements<float>(images_.elements());
    images_.data = image_memory_.as<float>().data();
    // The same images whatever the ranks.
    const int64_t first = images_.elements() / geometry_.local_shards * geometry_.first_shard;
    for (int64_t i = 0; i < images_.elements(); ++i)
      image_memory_.as<float>()[i] = static_cast<float>((first + i) * 7919 % 1009) / 500.0F - 1.0F;
    grad_z_memory_ = context.allocate_storage(geometry_.local_rows() * padded_cols(columns));
    grad_z_ = {
        {grad_z_memory_.data(), context.device().storage()}, geometry_.local_rows(), columns, padded_cols(columns)};
  }

  double take() {
    const Exec& exec = context_.exec();
    const std::span<float> gradients = model_.store().per_rank_gradients();
    const ConstMatrix z = model_.forward(images_);
    const double start_s = monotonic_seconds();
    const double* loss = loss_->forward(z);
    loss_->backward(grad_z_);
    loss_s_ = monotonic_seconds() - start_s;
    reducer_.begin(gradients);
    model_.backward(grad_z_, [&](const Parameter& first) { reducer_.ready_from(first.grad - gradients.data()); });
    reducer_.finish();
    int* non_finite = non_finite_.as<int>().data();
    flag_non_finite(exec, std::span(loss, 1), non_finite);
    flag_non_finite(exec, std::span<const float>(model_.store().gradients()), non_finite);
    gradient_norm_.queue_square();
    optimizer_->update(steps_++, kLearningRate, non_finite);
    model_.update_running_statistics(non_finite);
    if (*non_finite != 0) fail(ExitCode::kDiverged, "a gradient is not finite: this step was not a step of training");
    return *loss;
  }

  double loss_seconds() const { return loss_s_; }       // of the last step
  double flops() const { return model_.step_flops(); }  // of this rank
  int64_t gradient_elements() { return static_cast<int64_t>(model_.store().per_rank_gradients().size()); }

 private:
  Context& context_;
  ShardGeometry geometry_;
  Model model_;
  std::unique_ptr<ContrastiveLoss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  GradientReducer reducer_;
  GradientNorm gradient_norm_;
  Buffer non_finite_, image_memory_, grad_z_memory_;
  Images images_;
  Matrix grad_z_;
  int64_t steps_ = 0;
  double loss_s_ = 0;
};

// One entry for each operation and size of its buffer.
nlohmann::json per_step(const TimedCollectives::Kinds& kinds, int steps) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [key, kind] : kinds) {
    out.push_back({{"operation", key.first},
                   {"bytes", key.second},
                   {"calls", kind.calls / steps},
                   {"seconds", kind.seconds / steps},
                   {"waited_seconds", kind.waited_seconds / steps}});
  }
  return out;
}

void run(int argc, char** argv) {
  if (argc < 2) fail(ExitCode::kUsage, "step_run REPEATS KEY=VALUE...");
  const int repeats = std::stoi(argv[1]);
  MpiSession session;
  const Settings given = settings_from_string("{}", "the defaults", {argv + 2, argv + argc});
  const Settings settings = resolve_for_device(given, false);
  const auto inner = make_collectives(session, settings.train.reduction, nullptr);
  TimedCollectives collectives(*inner);
  if (settings.run.precision == Precision::kTf32) fail(ExitCode::kUsage, "step_run computes on the CPU: fp32 or bf16");
  if (const std::string reason = why_no_bfloat16(); settings.run.precision == Precision::kBf16 && !reason.empty())
    fail(ExitCode::kUsage, "run.precision: bf16: {}", reason);
  Context context(settings.run.threads > 0 ? settings.run.threads : omp_get_max_threads(), settings.run.precision);

  const int64_t before_bytes = memory_bytes("VmRSS");
  Step step(settings, context, collectives);
  nlohmann::json seconds = nlohmann::json::array(), cpu = seconds, loss_seconds = seconds;
  double loss = 0;
  for (int warm_up = 0; warm_up < 2; ++warm_up) loss = step.take();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    collectives.barrier();
    const double start_s = monotonic_seconds(), cpu_start_s = cpu_seconds();
    loss = step.take();
    seconds.push_back(monotonic_seconds() - start_s);
    cpu.push_back(cpu_seconds() - cpu_start_s);
    loss_seconds.push_back(step.loss_seconds());
  }
  const int64_t peak_bytes = memory_bytes("VmHWM");
  if (session.size() > 1) {
    collectives.count(true);
    for (int repeat = 0; repeat < repeats; ++repeat) step.take();
  }
  if (session.rank() == 0) {
    print_out(nlohmann::json{{"loss", loss},
                             {"seconds", seconds},
                             {"cpu_seconds", cpu},
                             {"loss_seconds", loss_seconds},
                             {"bytes", peak_bytes - before_bytes},
                             {"flops", step.flops() * session.size()},
                             {"gradient_elements", step.gradient_elements()},
                             {"collectives", per_step(collectives.kinds(), repeats)}}
                  .dump() +
              "\n");
  }
  session.finish();
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_main(argc, argv, simclr::run);
}
