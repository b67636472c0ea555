// The lines that people and scripts look for in the output of `info`.
#include "src/commands/info.h"

#include <gmock/gmock.h>

#include "src/checkpoint/training_state.h"
#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Info, DescribesACheckpoint) {
  TemporaryFolder folder;
  std::vector<float> weight(6), momentum(6);
  const TrainingState state{{.step = 12,
                             .epoch = 3,
                             .config_yaml = "run:\n  seed: 1\n",
                             .config_hash = "abc",
                             .environment = {{"host", "node7"}}},
                            {{"conv1.weight", TensorType::kFloat32, {2, 3}, weight.data()},
                             {"optimizer.momentum.conv1.weight", TensorType::kFloat32, {2, 3}, momentum.data()}}};
  write_checkpoint(folder.path() / "c", state);
  EXPECT_EQ(describe_checkpoint(folder.path() / "c", InfoConfig::kPrint),
            "file: " + (folder.path() / "c").string() +
                "\nstep: 12\nepoch: 3\nconfig hash: abc\nhost: node7\n"
                "config:\n  run:\n    seed: 1\n"
                "tensors: 2\n"
                "  name                             dtype  shape   bytes\n"
                "  conv1.weight                     F32    [2, 3]  24\n"
                "  optimizer.momentum.conv1.weight  F32    [2, 3]  24\n"
                "weights: 1 tensors, 6 elements, 24 bytes\n"
                "optimizer: 1 tensors, 6 elements, 24 bytes\n"
                "weights sha256: " +
                weights_sha256(state.tensors) + "\nchecksum: ok\n");
  EXPECT_THAT(describe_checkpoint(folder.path() / "c", InfoConfig::kLeaveOut), Not(HasSubstr("seed")));
}

TEST(Info, RefusesEveryFlippedByte) {
  TemporaryFolder folder;
  float value = 1;
  write_checkpoint(folder.path() / "c", {{}, {{"w", TensorType::kFloat32, {}, &value}}});
  const std::string good = read_file(folder.path() / "c");
  for (size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] ^= 1;
    write_file(folder.path() / "c", damaged);
    ASSERT_NE(error_text([&] { describe_checkpoint(folder.path() / "c", InfoConfig::kLeaveOut); }), "") << at;
  }
}

TEST(Info, DescribesAForeignFile) {
  TemporaryFolder folder;
  const std::string json =
      R"({"__metadata__":{"format":"p\u001bt"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  write_file(folder.path() / "f", std::string(1, static_cast<char>(json.size())) + std::string(7, '\0') + json + "x");
  const std::string text = describe_checkpoint(folder.path() / "f", InfoConfig::kPrint);
  EXPECT_THAT(text, HasSubstr("not a simclr_train checkpoint\nformat: p?t\n"));
  EXPECT_THAT(text, HasSubstr("checksum: none\n"));
}

}  // namespace
}  // namespace simclr
