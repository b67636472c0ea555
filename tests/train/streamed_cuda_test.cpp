// A whole run on one GPU: a data set that does not fit there trains to the same bits as one that does; and beats during
// long work before the first step.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/augment/device_view_loader.h"
#include "src/comm/nccl_collectives.h"
#include "src/comm/single_process_collectives.h"
#include "src/comm/staged_collectives.h"
#include "src/device/choose_device.h"
#include "src/train/trainer.h"
#include "src/train/training_setup.h"
#include "tests/base/temporary_folder.h"
#include "tests/train/train_support.h"

namespace simclr {
namespace {

// One GPU with all that a run computes with.
struct GpuRun {
  explicit GpuRun(const Settings& settings, const Beat& beat = no_beat)
      : context(make_cuda_device({.precision = settings.run.precision})),
        nccl(make_nccl_collectives(alone, context, settings.train.reduction)),
        staged(*nccl, context.shared_device(), nullptr),
        on_gpu{context, *nccl, staged, heartbeat},
        setup(settings, {}, on_gpu, beat) {}
  SingleProcessCollectives alone;
  Context context;
  std::unique_ptr<NcclCollectives> nccl;
  StagedCollectives staged;
  Heartbeat heartbeat;
  RunContext on_gpu;
  TrainingSetup setup;
};

// The weights after ten steps, with resident_bytes of images on the GPU.
std::string train(const Settings& settings, int64_t resident_bytes) {
  const TemporaryFolder folder;
  GpuRun run(settings);
  StateIo state(CheckpointStore(folder.path() / "checkpoints", 1), {}, run.setup.model, *run.setup.optimizer,
                run.on_gpu);
  state.resume("none", settings);
  DeviceViewLoader loader(run.context, *run.setup.train_set, *run.setup.plan, run.setup.view,
                          {.seed = settings.run.seed, .shard_count = run.setup.geometry.local_shards}, resident_bytes);
  StepLog log(run.setup, run.on_gpu, {});
  Trainer trainer(run.setup, run.on_gpu,
                  {.loader = loader, .state = state, .log = log, .progress = [](int64_t, const std::string&) {}});
  EXPECT_EQ(trainer.run().step, kSmallSteps);
  return state.weights_hash();
}

TEST(StreamedImages, TrainToTheSameBits) {
  Settings settings = small_settings();
  settings.loss.algorithm = LossAlgorithm::kEinsum;
  const int64_t all = int64_t{40} * 3 * 8 * 8;
  const std::string resident = train(settings, all);
  EXPECT_EQ(train(settings, all - 1), resident);
  EXPECT_EQ(train(settings, 0), resident);
  Settings other = settings;
  other.run.seed = 5;
  EXPECT_NE(train(other, 0), resident) << "the images matter";
}

TEST(Beats, BetweenPlansAndWhileImagesGoToTheGpu) {
  int beats = 0;
  const Beat beat = [&] { ++beats; };
  const Settings settings = small_settings();
  GpuRun run(settings, beat);
  const int convolutions = 1 + 4 * 2 + 3;  // ResNet-10
  EXPECT_EQ(beats, (40 + 8) + (2 + 2) + 40 + convolutions) << "drawn; hashed; channel statistics; plans";
  for (const int64_t resident_bytes : {kResidentBytes, int64_t{0}}) {
    beats = 0;
    DeviceImages images(run.context, *run.setup.train_set, 8, resident_bytes, beat);
    EXPECT_EQ(beats, images.resident() ? 40 + 40 : 40) << "looked at, and copied";
  }
}

}  // namespace
}  // namespace simclr
