// The folder of checkpoints: what is kept, what is found, what --resume does.
#include "src/checkpoint/checkpoint_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointStoreTest : public testing::Test {
 protected:
  fs::path save(int64_t step, int keep = 3) {
    value_ = static_cast<float>(step);
    return CheckpointStore(folder(), keep)
        .save({{.step = step, .epoch = 0, .config_yaml = "", .config_hash = "", .environment = {}},
               {{"w", TensorType::kFloat32, {}, &value_}}});
  }
  void damage(const fs::path& path) {
    std::string bytes = read_file(path);
    bytes.back() ^= 1;
    write_file(path, bytes);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder())) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path folder() const { return run_.path() / "checkpoints"; }
  CheckpointStore store() const { return CheckpointStore(folder(), 3); }
  void SetUp() override { store().prepare(); }

  TemporaryFolder run_;
  float value_ = 0;
};

TEST_F(CheckpointStoreTest, KeepsTheLast) {
  EXPECT_EQ(save(12), folder() / "step_00000012.safetensors");
  for (int64_t step : {5, 90, 7}) save(step, 100);
  EXPECT_EQ(names().size(), 4u);
  save(100, 2);
  EXPECT_THAT(names(), ElementsAre("step_00000090.safetensors", "step_00000100.safetensors"));
  save(123456789, 1);
  EXPECT_THAT(names(), ElementsAre("step_123456789.safetensors"));
}

TEST_F(CheckpointStoreTest, RemovesNothingThatIsLaterOrNotItsOwn) {
  save(20);
  save(30);
  write_file(folder() / "best.safetensors", "x");
  write_file(folder() / "step_x.safetensors", "x");
  write_file(folder() / "step_00000001.safetensors.bak", "x");
  save(10, 1);  // resumed from an earlier step
  EXPECT_THAT(names(), ElementsAre("best.safetensors", "step_00000001.safetensors.bak", "step_00000010.safetensors",
                                   "step_00000020.safetensors", "step_00000030.safetensors", "step_x.safetensors"));
}

TEST_F(CheckpointStoreTest, ASaveThatFailsRemovesNothing) {
  save(1);
  save(2);
  {
    const FileSizeLimit full(100);
    EXPECT_THAT(error_text([&] { save(3, 1); }), HasSubstr("step_00000003.safetensors: File too large"));
  }
  EXPECT_THAT(names(), ElementsAre("step_00000001.safetensors", "step_00000002.safetensors"));
}

TEST_F(CheckpointStoreTest, PrepareRemovesOnlyTemporaryFiles) {
  write_file(folder() / "step_00000003.safetensors.tmp-4711", "half");
  write_file(folder() / "notes.tmp", "mine");
  EXPECT_THAT(store().prepare(), ElementsAre("step_00000003.safetensors.tmp-4711"));
  EXPECT_THAT(names(), ElementsAre("notes.tmp"));
  EXPECT_TRUE(store().prepare().empty());
  write_file(run_.path() / "file", "");
  EXPECT_THAT(error_text([&] { CheckpointStore(run_.path() / "file", 1).prepare(); }),
              HasSubstr((run_.path() / "file").string()));
}

TEST_F(CheckpointStoreTest, FindsTheLargestStepInside) {
  save(9);
  const fs::path newest = save(10);
  fs::rename(newest, folder() / "a.safetensors");                              // the name does not count
  fs::last_write_time(folder() / "a.safetensors", fs::file_time_type::min());  // neither does the time
  const ResumePoint point = store().find_latest();
  EXPECT_EQ(point.path, folder() / "a.safetensors");
  EXPECT_EQ(point.header.step, 10);
  EXPECT_TRUE(point.warnings.empty());
}

TEST_F(CheckpointStoreTest, PassesOverDamagedOnesByName) {
  save(1);
  const fs::path good = save(2, 9);
  damage(save(3, 9));
  write_file(save(4, 9), "");
  write_file(save(5, 9), read_file(good).substr(0, 50));
  fs::create_directory(folder() / "step_00000006.safetensors");
  write_safetensors(folder() / "encoder.safetensors", {}, {});
  const ResumePoint point = store().find_latest();
  EXPECT_EQ(point.path, good);
  EXPECT_EQ(point.header.step, 2);
  EXPECT_THAT(
      point.warnings,
      testing::UnorderedElementsAre(
          HasSubstr("step_00000003.safetensors: its content does not match its checksum: damaged; skipping this file"),
          HasSubstr("step_00000004.safetensors: it is empty"),
          HasSubstr("step_00000005.safetensors: its header claims"),
          HasSubstr("step_00000006.safetensors: it is a folder"),
          HasSubstr("encoder.safetensors: it is not a simclr_train checkpoint")));
}

TEST_F(CheckpointStoreTest, AutoStartsFromScratchOnlyInAnEmptyFolder) {
  EXPECT_FALSE(store().resolve("auto").path);
  EXPECT_FALSE(CheckpointStore(run_.path() / "not there", 1).resolve("auto").path);
  const fs::path path = save(1);
  EXPECT_EQ(store().resolve("auto").path, path);
  damage(path);
  EXPECT_THAT(error_text([&] { store().resolve("auto"); }), HasSubstr("none of the 1 checkpoints"));
}

TEST_F(CheckpointStoreTest, NoneDoesNotMixTwoRuns) {
  EXPECT_FALSE(store().resolve("none").path);
  EXPECT_FALSE(CheckpointStore(run_.path() / "not there", 1).resolve("none").path);
  save(1);
  save(7);
  EXPECT_THAT(error_text([&] { store().resolve("none"); }),
              HasSubstr("already holds 2 checkpoints (the last: step_00000007"));
}

TEST_F(CheckpointStoreTest, APathIsThatFileOrAnError) {
  const fs::path first = save(1);
  save(2);
  const ResumePoint point = store().resolve(first.string());
  EXPECT_EQ(point.path, first);
  EXPECT_EQ(point.header.step, 1);
  damage(first);
  EXPECT_THAT(error_text([&] { store().resolve(first.string()); }), HasSubstr("checksum"));
  EXPECT_THAT(error_text([&] { store().resolve("missing"); }), HasSubstr("cannot read missing: No such file"));
}

TEST_F(CheckpointStoreTest, ARunFolderStandsForItsNewestCheckpoint) {
  EXPECT_THAT(error_text([&] { open_checkpoint(run_.path()); }), HasSubstr("no checkpoint in " + run_.path().string()));
  const fs::path older = save(7), newer = save(12), newest = save(20);
  damage(newest);
  EXPECT_EQ(open_checkpoint(run_.path()).path(), newer);
  EXPECT_EQ(open_checkpoint(folder()).path(), newer);
  EXPECT_EQ(open_checkpoint(older).path(), older);
  EXPECT_THAT(error_text([&] { open_checkpoint(run_.path() / "gone"); }), HasSubstr("gone: No such file"));
}

TEST_F(CheckpointStoreTest, SetsAsideWhatComesAfterTheResumedStep) {
  save(1);
  save(2, 9);
  save(3, 9);
  damage(save(4, 9));
  EXPECT_THAT(store().set_aside_after(2), ElementsAre(folder() / "step_00000003.safetensors.set_aside",
                                                      folder() / "step_00000004.safetensors.set_aside"));
  const ResumePoint point = store().resolve("auto");
  EXPECT_EQ(point.header.step, 2);
  EXPECT_TRUE(point.warnings.empty());

  save(3, 9);
  EXPECT_THAT(store().set_aside_after(2), ElementsAre(folder() / "step_00000003.safetensors.set_aside.2"));
  save(3, 9);
  EXPECT_THAT(store().set_aside_after(2), ElementsAre(folder() / "step_00000003.safetensors.set_aside.3"));
  EXPECT_TRUE(fs::exists(folder() / "step_00000003.safetensors.set_aside"));
}

// info, export and evaluate read a folder whose run rotates its checkpoints at the same time.
TEST_F(CheckpointStoreTest, AReaderNextToALiveRunFindsACheckpoint) {
  save(1, 1);
  std::atomic<bool> over{false};
  std::thread run([&] {
    for (int64_t step = 2; !over; ++step) save(step, 1);
  });
  int64_t newest = 0;
  for (int i = 0; i < 500; ++i) {
    const SafetensorsFile file = open_checkpoint(run_.path());
    EXPECT_NO_THROW(file.verify_checksum()) << "also when its run has removed it";
    const int64_t step = read_checkpoint_header(file).step;
    EXPECT_GE(step, newest);
    newest = step;
  }
  over = true;
  run.join();
  EXPECT_GT(newest, 1);
}

TEST_F(CheckpointStoreTest, TheBestIsNextToTheFolderAndNeverResumedFrom) {
  const auto save_best = [&](int64_t step) {
    store().save_best({{.step = step, .epoch = 0, .config_yaml = "", .config_hash = "", .environment = {{"a", "b"}}},
                       {{"w", TensorType::kFloat32, {}, &value_}}});
  };
  std::vector<std::string> warnings;
  EXPECT_FALSE(store().find_best(9, warnings));
  save(5);
  save_best(8);
  EXPECT_EQ(store().resolve("auto").header.step, 5);
  const auto best = store().find_best(8, warnings);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->step, 8);
  EXPECT_EQ(best->environment.at("a"), "b");
  EXPECT_TRUE(warnings.empty());

  EXPECT_FALSE(store().find_best(7, warnings)) << "of a branch that is left";
  EXPECT_FALSE(fs::exists(store().best_path()));
  EXPECT_TRUE(fs::exists(run_.path() / "best.safetensors.set_aside"));
  write_file(store().best_path(), "x");
  EXPECT_FALSE(store().find_best(9, warnings));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(
      warnings[0],
      HasSubstr("best.safetensors is of step 8, later than the checkpoint that this run resumes from; renamed to"));
  EXPECT_THAT(warnings[1], HasSubstr("best.safetensors"));
}

// Writing takes two passes (checksum, file), each in pieces of a mebibyte; reading takes one.
TEST_F(CheckpointStoreTest, BeatsWhileItWritesReadsAndVerifies) {
  int beats = 0;
  const Beat beat = [&] { ++beats; };
  const auto beats_of = [&](auto&& work) {
    beats = 0;
    work();
    return beats;
  };
  std::vector<float> values(5 * kBeatBytes / sizeof(float) / 2);  // 2.5 MiB: three pieces
  const std::vector<NamedTensor> tensors = {
      {"w", TensorType::kFloat32, {static_cast<int64_t>(values.size())}, values.data()}};
  const CheckpointStore store(folder(), 3, beat);
  const TrainingState state{{.step = 1, .epoch = 0, .config_yaml = "", .config_hash = "", .environment = {}}, tensors};
  const fs::path path = folder() / "step_00000001.safetensors";
  EXPECT_EQ(beats_of([&] { store.save(state); }), 6);
  EXPECT_EQ(beats_of([&] { store.find_latest(); }), 3);
  EXPECT_EQ(beats_of([&] { store.resolve(path.string()); }), 3);
  EXPECT_EQ(beats_of([&] { load_checkpoint(path, tensors, LoadWhat::kEverything, beat); }), 6);  // checksum, then read
  EXPECT_EQ(beats_of([&] { weights_sha256(tensors, beat); }), 3);
}

}  // namespace
}  // namespace simclr
