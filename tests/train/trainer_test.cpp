// How a run that cannot continue ends: in order on all ranks, at the same step, with the reason. Errors of one rank
// alone, gradients that are not finite, drift between ranks, and time limits.
#include "src/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "src/comm/agreement.h"
#include "src/train/training_setup.h"
#include "tests/checkpoint/checkpoint_support.h"
#include "tests/harness/thread_collectives.h"
#include "tests/train/train_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 2;
constexpr int64_t kSteps = kSmallSteps;

struct End {
  TrainOutcome outcome;          // without an AgreedError
  std::optional<ExitCode> code;  // none: no AgreedError
  std::string text;
  int64_t steps = 0;
  std::string weights;
};

// The loss of the run, but for one NaN that the last rank puts into its gradient at one step.
class PoisonedLoss : public ContrastiveLoss {
 public:
  PoisonedLoss(std::unique_ptr<ContrastiveLoss> loss, int64_t step) : loss_(std::move(loss)), steps_left_(step) {}
  const double* forward(const ConstMatrix& z) override { return loss_->forward(z); }
  void backward(const Matrix& grad_z) override {
    loss_->backward(grad_z);
    if (--steps_left_ == 0) grad_z.row(0).as<float>()[0] = std::nanf("");
  }
  std::string describe() const override { return loss_->describe(); }
  size_t memory_bytes() const override { return loss_->memory_bytes(); }

 private:
  std::unique_ptr<ContrastiveLoss> loss_;
  int64_t steps_left_;
};

// Trains on two ranks as threads. after_step is called on each rank after each step, as the trainer's progress;
// what it throws is an error of that rank alone. drifting: a tensor that changes on rank 1 after step 3. poisoned: see
// PoisonedLoss; 0: no step. Returns how run() ended on each rank.
std::vector<End> train(const std::filesystem::path& folder, const Settings& settings,
                       const std::function<void(int rank, int64_t step)>& after_step, int64_t poisoned = 0,
                       const std::string& drifting = "") {
  std::vector<End> ends(kRanks);
  run_ranks(kRanks, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    Topology topology;
    topology.rank = topology.local_rank = rank;
    topology.size = topology.local_size = kRanks;
    Context context(1);
    Heartbeat heartbeat;
    const RunContext run{context, collectives, collectives, heartbeat};
    TrainingSetup setup(settings, topology, run);
    StateIo state(CheckpointStore(folder / "checkpoints", 100), {}, setup.model, *setup.optimizer, run);
    state.resume("none", settings);
    ViewLoader loader(*setup.train_set, *setup.plan, setup.view,
                      {.seed = settings.run.seed,
                       .first_shard = setup.geometry.first_shard,
                       .shard_count = setup.geometry.local_shards,
                       .start_step = 0,
                       .end_step = kSteps,
                       .workers = 0});
    setup.loss = std::make_unique<PoisonedLoss>(std::move(setup.loss), rank == kRanks - 1 ? poisoned : 0);
    StepLog::Files files;
    if (rank == 0) files.metrics.emplace(MetricsFile::begin(folder / "metrics.jsonl"));
    StepLog log(setup, run, std::move(files));
    Trainer trainer(setup, run,
                    {.loader = loader, .state = state, .log = log, .progress = [&](int64_t step, const std::string&) {
                       after_step(rank, step);
                       if (rank != 1 || step != 3) return;
                       for (const NamedTensor& t : state.tensors())
                         if (t.name == drifting) *static_cast<float*>(t.data) += 0.5F;
                     }});
    End& end = ends[rank];
    try {
      end.outcome = trainer.run();
    } catch (const AgreedError& error) {
      end.code = error.code();
      end.text = error.what();
    }
    end.steps = trainer.steps_done();
    end.weights = state.weights_hash();
  });
  return ends;
}

void fail_at(int64_t wanted, int64_t step) {
  if (step >= wanted) fail(ExitCode::kOutput, "no room for note {}", step);
}

void expect_all(const std::vector<End>& ends, int64_t steps, const std::string& text) {
  for (const End& end : ends) {
    EXPECT_EQ(end.code, ExitCode::kOutput);
    EXPECT_EQ(end.steps, steps);
    EXPECT_THAT(end.text, HasSubstr(text));
    EXPECT_EQ(end.weights, ends[0].weights);
  }
}

TEST(ErrorOfOneRank, EndsAllWithItsControlWordAndTheFirstReason) {
  const TemporaryFolder folder;
  const auto ends = train(folder.path(), small_settings(), [](int rank, int64_t step) {
    if (rank == 1) fail_at(3, step);  // the control word of step 3 is out: that of step 4 announces the error
  });
  expect_all(ends, 4, "after step 3: no room for note 3");
  EXPECT_THAT(ends[0].text, HasSubstr("rank 1 ("));
}

TEST(ErrorOfOneRank, NoCheckpointFollowsAnErrorOfTheRankThatWritesThem) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.checkpoint.every_steps = 1;
  const auto ends = train(folder.path(), settings, [](int rank, int64_t step) {
    if (rank == 0) fail_at(3, step);
  });
  expect_all(ends, 4, "after step 3: no room for note 3");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "checkpoints/step_00000003.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "checkpoints/step_00000004.safetensors"));
}

TEST(ErrorOfOneRank, IsNotLostInTheLastSteps) {
  const TemporaryFolder folder;
  for (const int64_t step : {kSteps - 1, kSteps}) {
    const auto ends = train(folder.path(), small_settings(), [&](int rank, int64_t now) {
      if (rank == 1) fail_at(step, now);
    });
    std::filesystem::remove_all(folder.path() / "checkpoints");
    expect_all(ends, kSteps, fmt::format("no room for note {}", step));
  }
}

TEST(ErrorOfOneRank, ComesBeforeAStop) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.train.stop_at_step = 4;
  const auto ends = train(folder.path(), settings, [](int rank, int64_t step) {
    if (rank == 1) fail_at(4, step);
  });
  expect_all(ends, 4, "no room for note 4");
}

TEST(ErrorOfOneRank, ALineOfMetricsThatCannotBeWrittenNamesTheFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::optional<FileSizeLimit> limit;
  const auto ends = train(folder.path(), small_settings(), [&](int rank, int64_t step) {
    if (rank == 0 && step == 3) limit.emplace(std::filesystem::file_size(path) + 1);
  });
  limit.reset();
  expect_all(ends, 4, "after step 4: cannot write " + path.string() + ": File too large");
}

TEST(ErrorOfOneRank, ACheckpointThatCannotBeWrittenLeavesTheEarlierOnes) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.checkpoint.every_steps = 2;
  std::optional<FileSizeLimit> limit;
  const auto ends = train(folder.path(), settings, [&](int rank, int64_t step) {
    if (rank != 0 || step != 2) return;
    for (int i = 0; i < 1000 && !std::filesystem::exists(folder.path() / "checkpoints/step_00000002.safetensors"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    limit.emplace(100000);
  });
  limit.reset();
  // The thread that writes may take some steps to fail.
  expect_all(ends, ends[0].steps, "cannot write");
  EXPECT_GE(ends[0].steps, 4);
  EXPECT_THAT(ends[0].text, HasSubstr("step_00000004.safetensors"));
  SafetensorsFile(folder.path() / "checkpoints/step_00000002.safetensors").verify_checksum();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "checkpoints"), {}), 1);
}

TEST(NonFiniteGradient, BehindAFiniteLossOfOneRankNeverReachesTheWeights) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  const auto nothing = [](int, int64_t) {};
  const auto poisoned = train(folder.path() / "poisoned", settings, nothing, 3);
  settings.train.stop_at_step = 2;
  const auto before = train(folder.path() / "before", settings, nothing);
  for (const End& end : poisoned) {
    EXPECT_EQ(end.code, ExitCode::kDiverged);
    EXPECT_EQ(end.steps, 3);
    EXPECT_THAT(end.text, HasSubstr("step 3: the loss or a gradient is not finite"));
    EXPECT_EQ(end.weights, before[0].weights);
  }
}

TEST(Drift, IsNamedByTensorAndRank) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.train.check_every = 4;
  settings.optimizer.base_lr = settings.optimizer.weight_decay = 0;  // so that it stays in the tensor
  const auto nothing = [](int, int64_t) {};
  const auto ends = train(folder.path(), settings, nothing, 0, "layer2.0.conv2.weight");
  for (const End& end : ends) {
    EXPECT_EQ(end.code, ExitCode::kDevice);
    EXPECT_EQ(end.steps, 4) << "right after the check";
    EXPECT_THAT(end.text, HasSubstr("the weights of the ranks differ after step 4: rank 0: "));
    EXPECT_THAT(end.text, HasSubstr("tensors that differ from rank 0's: layer2.0.conv2.weight on rank 1; a host"));
    EXPECT_EQ(end.text, ends[0].text);
  }
  for (const End& end : train(folder.path() / "without", settings, nothing)) EXPECT_FALSE(end.code);
}

std::vector<int64_t> saved_steps(const std::filesystem::path& folder) {
  std::vector<int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "checkpoints"))
    steps.push_back(read_checkpoint_header(SafetensorsFile(entry.path())).step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

// The trainer's clock shows the time since the machine started: more than the limits below.
TEST(Clock, ATimeLimitStopsAllRanksAtOneStepWithACheckpoint) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.train.max_minutes = 1e-6;
  for (const End& end : train(folder.path(), settings, [](int, int64_t) {})) {
    EXPECT_FALSE(end.code);
    EXPECT_TRUE(end.outcome.stopped);
    EXPECT_EQ(end.outcome.step, 1) << "each start makes progress";
    EXPECT_EQ(end.outcome.reason, "time limit reached (train.max_minutes: 1e-06)");
  }
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{1}));
}

TEST(Clock, ALimitThatIsNotReachedChangesNothing) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.train.max_minutes = 1e6;
  settings.checkpoint.every_minutes = 1e6;
  for (const End& end : train(folder.path(), settings, [](int, int64_t) {})) EXPECT_FALSE(end.outcome.stopped);
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{kSteps}));
}

TEST(Clock, AsksForACheckpointOnceEachTimeTheIntervalIsOver) {
  const TemporaryFolder folder;
  Settings settings = small_settings();
  settings.checkpoint.every_minutes = 1e-9;
  train(folder.path(), settings, [](int, int64_t) {});
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace simclr
