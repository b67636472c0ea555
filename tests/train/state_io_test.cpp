// Work between the steps and before the first says that it gets on, piece by piece.
#include "src/train/state_io.h"

#include <gtest/gtest.h>

#include "src/config/resolved.h"
#include "src/train/knn_evaluation.h"
#include "src/train/parts.h"
#include "tests/base/temporary_folder.h"
#include "tests/harness/thread_collectives.h"
#include "tests/train/small_run.h"

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
    const Settings settings = small_settings();  // 40 + 8 pictures
    Context context(1);
    const Site site{context, collectives, collectives};
    Parts parts(settings, {}, site, beat);
    EXPECT_EQ(beats, (40 + 8) + (2 + 2) + 40) << "drawn; hashed (pixels, labels); channel statistics";

    CheckpointHeader header;
    header.config_yaml = print_config(settings);
    StateIo state(CheckpointStore(folder.path(), 3, beat), header, parts.model, *parts.optimizer, site, beat);
    const int tensors = static_cast<int>(state.tensors().size());
    EXPECT_GT(tensors, 50);
    EXPECT_EQ(beats_of([&] { state.is_finite(); }), tensors);
    EXPECT_EQ(beats_of([&] { state.queue_state_hash(); }), tensors);
    EXPECT_GT(beats_of([&] { state.weights_hash(); }), tensors / 3);  // the optimizer's are left out
    EXPECT_EQ(beats_of([&] { state.save(1, 0); }), 2 * tensors);
    EXPECT_GE(beats_of([&] { state.resume("auto", settings); }), tensors);

    KnnEvaluation knn(parts, site);
    const int calls = 40 / 16 + 1 + 1;  // of 16 pictures, for 40 and 8
    EXPECT_EQ(beats_of([&] { knn.run(beat); }), calls + 1 + 1) << "calls of the network, before the vote, its block";
  });
}

}  // namespace
}  // namespace simclr
