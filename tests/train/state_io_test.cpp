// Beats during long work outside the steps; checkpoints saved in the background; resume and best.safetensors.
#include "src/train/state_io.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/config/resolved.h"
#include "src/train/knn_evaluation.h"
#include "src/train/training_setup.h"
#include "tests/base/temporary_folder.h"
#include "tests/harness/thread_collectives.h"
#include "tests/train/train_support.h"

namespace simclr {
namespace {

TEST(Beats, WhileARunIsPutTogetherSavedHashedAndEvaluated) {
  const TemporaryFolder folder;
  run_ranks(1, [&](Collectives& collectives) {
    int beats = 0;
    const Beat beat = [&] { ++beats; };
    const auto beats_of = [&](auto&& work) {
      beats = 0;
      work();
      return beats;
    };
    const Settings settings = small_settings();  // 40 + 8 images
    Context context(1);
    Heartbeat heartbeat;
    const RunContext run{context, collectives, collectives, heartbeat};
    TrainingSetup setup(settings, {}, run, beat);
    EXPECT_EQ(beats, (40 + 8) + (2 + 2) + 40 + 12)
        << "drawn; hashed (pixels, labels); channel statistics; plans of convolutions";

    CheckpointHeader header;
    header.config_yaml = print_config(settings);
    StateIo state(CheckpointStore(folder.path(), 3, beat), header, setup.model, *setup.optimizer, run, beat);
    const int tensors = static_cast<int>(state.tensors().size());
    EXPECT_GT(tensors, 50);
    EXPECT_EQ(beats_of([&] { state.is_finite(); }), tensors);
    EXPECT_EQ(beats_of([&] { state.queue_state_hash(); }), tensors);
    EXPECT_GT(beats_of([&] { state.weights_hash(); }), tensors / 3);  // the optimizer's are left out
    EXPECT_EQ(beats_of([&] { state.begin_save(1, 0); }), tensors);
    state.finish_save();
    EXPECT_GE(beats_of([&] { state.resume("auto", settings); }), tensors);

    KnnEvaluation knn(setup, run);
    const int calls = 40 / 16 + 1 + 1;  // of 16 images, for 40 and 8
    EXPECT_EQ(beats_of([&] { knn.run(beat); }), calls + 1 + 1) << "calls of the network, before the vote, its block";
  });
}

// What training does to the weights while the file is being written is not in it.
TEST(Saving, WritesTheStateOfItsMomentAndThoseThatFollowInOrder) {
  const TemporaryFolder folder;
  run_ranks(1, [&](Collectives& collectives) {
    Settings settings = small_settings();
    settings.model.encoder.width = 32;  // 2 MB of state
    Context context(1);
    Heartbeat heartbeat;
    const RunContext run{context, collectives, collectives, heartbeat};
    TrainingSetup setup(settings, {}, run);
    StateIo state(CheckpointStore(folder.path() / "checkpoints", 3), {}, setup.model, *setup.optimizer, run);
    state.resume("none", settings);
    std::vector<std::string> expected;
    for (int64_t step = 1; step <= 3; ++step) {
      expected.push_back(state.weights_hash());
      state.begin_save(step, 0);
      for (const NamedTensor& t : state.tensors())
        std::fill_n(static_cast<float*>(t.data), elements_of(t.shape), static_cast<float>(step));
    }
    EXPECT_EQ(state.last_checkpoint(), "checkpoints/step_00000002.safetensors")
        << "the third is not seen to have ended";
    state.finish_save();
    EXPECT_EQ(state.last_checkpoint(), "checkpoints/step_00000003.safetensors");
    for (int64_t step = 1; step <= 3; ++step) {
      const SafetensorsFile file(folder.path() / fmt::format("checkpoints/step_{:08d}.safetensors", step));
      file.verify_checksum();
      EXPECT_EQ(weights_sha256(file), expected[step - 1]);
    }
  });
}

TEST(KeepBest, WritesWhenTheAccuracyRisesAndContinuesAfterAResume) {
  const TemporaryFolder folder;
  run_ranks(1, [&](Collectives& collectives) {
    const Settings settings = small_settings();
    Context context(1);
    Heartbeat heartbeat;
    const RunContext run{context, collectives, collectives, heartbeat};
    TrainingSetup setup(settings, {}, run);
    CheckpointHeader header;
    header.config_yaml = print_config(settings);
    const CheckpointStore store(folder.path() / "checkpoints", 3);
    const auto make = [&] { return StateIo(store, header, setup.model, *setup.optimizer, run); };
    const auto best_step = [&] { return read_checkpoint_header(SafetensorsFile(store.best_path())).step; };
    {
      StateIo state = make();
      EXPECT_EQ(state.resume("auto", settings), 0);
      state.keep_if_best(1, 0, 0.5);
      state.keep_if_best(2, 0, 0.5);
      EXPECT_EQ(best_step(), 1);
      state.keep_if_best(3, 0, 0.75);
      EXPECT_EQ(best_step(), 3);
      state.begin_save(3, 0);
      state.finish_save();
    }
    {
      StateIo state = make();
      EXPECT_EQ(state.resume("auto", settings), 3);
      state.keep_if_best(4, 0, 0.7);
      EXPECT_EQ(best_step(), 3);
      state.keep_if_best(5, 0, 0.8);
      EXPECT_EQ(best_step(), 5);
    }
    StateIo state = make();
    EXPECT_EQ(state.resume("auto", settings), 3) << "the best of step 5 is of a branch that is left";
    state.keep_if_best(4, 0, 0.6);
    EXPECT_EQ(best_step(), 4);
  });
}

}  // namespace
}  // namespace simclr
