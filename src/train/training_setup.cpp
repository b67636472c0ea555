#include "src/train/training_setup.h"

#include <cmath>

#include "kernels/common/numbers.h"
#include "src/augment/view_loader.h"
#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/config/resolved.h"

namespace simclr {
namespace {

ShardGeometry make_geometry(const Settings& settings, int rank, int ranks) {
  const int64_t shards = shard_count(settings, ranks), local = shards / ranks;
  return {.shards = shards,
          .local_shards = local,
          .first_shard = rank * local,
          .images_per_shard = images_per_shard(settings, ranks)};
}

// Compares all splits between ranks; returns the hash of the training images. bank: null if the training split is it.
std::string agree_on_data(Collectives& collectives, const Dataset& train, const Dataset& test, const Dataset* bank,
                          const Beat& beat) {
  std::string hash = train.fingerprint(beat);
  require_equal(collectives, ExitCode::kData, "training data", hash, "give every host the same files");
  require_equal(collectives, ExitCode::kData, "test data", test.fingerprint(beat), "give every host the same files");
  if (bank != nullptr) {
    require_equal(collectives, ExitCode::kData, "labeled training data", bank->fingerprint(beat),
                  "give every host the same files");
  }
  return hash;
}

ScheduleDrops make_drops(const ScheduleSettings& s, int64_t steps_per_epoch) {
  ScheduleDrops drops{.milestones = {}, .gamma = s.gamma};
  for (const double epoch : s.milestones) drops.milestones.push_back(std::llround(epoch * as_double(steps_per_epoch)));
  return drops;
}

}  // namespace

TrainingSetup::TrainingSetup(const Settings& s, const Topology& topology, const RunContext& run, const Beat& beat,
                             const std::optional<RecordedPlans>& plans)
    : settings(s),
      train_set(agree_on(run.host, [&] { return open_dataset(s.data, Split::kTrain, beat); })),
      test_set(agree_on(run.host, [&] { return open_dataset(s.data, Split::kTest, beat); })),
      bank_set(agree_on(run.host, [&] { return open_bank(s.data, beat); })),
      data_sha256(agree_on_data(run.host, *train_set, *test_set, bank_set.get(), beat)),
      view(
          agree_on(run.host,
                   [&] { return make_view_params(s.views, s.data.image_size, channel_statistics(*train_set, beat)); })),
      geometry(make_geometry(s, topology.rank, topology.size)),
      plan(agree_on(run.host,
                    [&] {
                      return std::make_unique<SamplePlan>(SamplePlanSettings{.seed = s.run.seed,
                                                                             .count = train_set->count(),
                                                                             .global_batch = s.train.global_batch,
                                                                             .shards = geometry.shards});
                    })),
      context(run.context),
      workers(resolve_workers(s.data.workers, train_set->decodes(), context.threads())),
      model(context, run.collectives, geometry, s.model, s.data.image_size, s.run.seed,
            {.algorithm = plans ? plans->otherwise : s.model.convolution,
             .before = plans ? plans->names : PlanNames{},
             .share =
                 [&](const std::string& mine) {
                   beat();
                   return broadcast_text(run.host, mine);
                 }}),
      loss(make_loss(context, run.collectives, s.loss,
                     {.batch = s.train.global_batch, .columns = s.model.projector.output, .shards = geometry.shards})),
      optimizer(make_optimizer(context, model.store(), s.optimizer)),
      schedule(s.schedule.type, scaled_learning_rate(s),
               std::llround(s.schedule.warmup_epochs * as_double(plan->steps_per_epoch())), total_steps(),
               make_drops(s.schedule, plan->steps_per_epoch())) {}

int64_t TrainingSetup::total_steps() const {
  return settings.train.max_steps > 0 ? settings.train.max_steps : settings.train.epochs * plan->steps_per_epoch();
}

}  // namespace simclr
