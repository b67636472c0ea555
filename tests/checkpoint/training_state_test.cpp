// Checkpoints: metadata, the comparison with the model before anything is overwritten, the hash of the weights.
#include "src/checkpoint/training_state.h"

#include <gmock/gmock.h>

#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

struct Model {
  std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  std::vector<float> mean = {0.5F, 0.25F};
  std::vector<float> momentum = {-1, -2, -3, -4, -5, -6};

  std::vector<NamedTensor> views() {
    return {{"conv1.weight", TensorType::kFloat32, {2, 3}, weight.data()},
            {"bn1.running_mean", TensorType::kFloat32, {2}, mean.data()},
            {"optimizer.momentum.conv1.weight", TensorType::kFloat32, {2, 3}, momentum.data()}};
  }
  void clear() {
    for (std::vector<float>* v : {&weight, &mean, &momentum}) std::fill(v->begin(), v->end(), 0.0F);
  }
};

CheckpointHeader some_header() {
  return {
      .step = 12, .epoch = 3, .config_yaml = "run: {seed: 1}\n", .config_hash = "abc", .environment = {{"host", "h"}}};
}

TEST(TrainingState, ReadsBackWhatItWrote) {
  TemporaryFolder folder;
  Model model;
  write_checkpoint(folder.path() / "c", {some_header(), model.views()});
  model.clear();
  const CheckpointHeader header = load_checkpoint(folder.path() / "c", model.views(), LoadWhat::kEverything);
  EXPECT_EQ(header.step, 12);
  EXPECT_EQ(header.epoch, 3);
  EXPECT_EQ(header.config_yaml, "run: {seed: 1}\n");
  EXPECT_EQ(header.config_hash, "abc");
  EXPECT_EQ(header.environment, (std::map<std::string, std::string>{{"host", "h"}}));
  EXPECT_EQ(model.weight, Model().weight);
  EXPECT_EQ(model.mean, Model().mean);
  EXPECT_EQ(model.momentum, Model().momentum);
}

TEST(TrainingState, TheSameStateGivesTheSameBytes) {
  TemporaryFolder folder;
  Model model;
  write_checkpoint(folder.path() / "a", {some_header(), model.views()});
  write_checkpoint(folder.path() / "b", {some_header(), model.views()});
  EXPECT_EQ(read_file(folder.path() / "a"), read_file(folder.path() / "b"));
}

TEST(TrainingState, WeightsAloneLeaveTheOptimizerInTheFile) {
  TemporaryFolder folder;
  Model model;
  write_checkpoint(folder.path() / "c", {some_header(), model.views()});
  model.clear();
  std::vector<NamedTensor> weights = model.views();
  weights.pop_back();
  EXPECT_THAT(error_text([&] { load_checkpoint(folder.path() / "c", weights, LoadWhat::kEverything); }),
              HasSubstr("only in the file: optimizer.momentum.conv1.weight"));
  load_checkpoint(folder.path() / "c", weights, LoadWhat::kWeights);
  EXPECT_EQ(model.weight, Model().weight);
  EXPECT_EQ(model.momentum, std::vector<float>(6, 0.0F));
}

TEST(TrainingState, ListsEveryDifferenceAndOverwritesNothing) {
  TemporaryFolder folder;
  Model model;
  std::vector<NamedTensor> written = model.views();
  write_checkpoint(folder.path() / "c", {some_header(), written});
  std::vector<float> other(6, 9.0F);
  std::vector<double> doubles(2, 9.0);
  const std::vector<NamedTensor> wanted = {
      {"conv1.weight", TensorType::kFloat32, {3, 2}, other.data()},
      {"bn1.running_mean", TensorType::kFloat64, {2}, doubles.data()},
      {"fc.weight", TensorType::kFloat32, {6}, other.data()},
      {"fc.bias", TensorType::kFloat32, {6}, other.data()},
  };
  const std::string text = error_text([&] { load_checkpoint(folder.path() / "c", wanted, LoadWhat::kEverything); });
  EXPECT_THAT(text, HasSubstr((folder.path() / "c").string()));
  EXPECT_THAT(text, HasSubstr("conv1.weight (F32 [2, 3] in the file, F32 [3, 2] expected)"));
  EXPECT_THAT(text, HasSubstr("bn1.running_mean (F32 [2] in the file, F64 [2] expected)"));
  EXPECT_THAT(text, HasSubstr("missing in the file: fc.weight, fc.bias"));
  EXPECT_THAT(text, HasSubstr("only in the file: optimizer.momentum.conv1.weight"));
  EXPECT_EQ(other, std::vector<float>(6, 9.0F));
  EXPECT_EQ(doubles, std::vector<double>(2, 9.0));
}

TEST(TrainingState, ALongListOfDifferencesIsCut) {
  TemporaryFolder folder;
  write_checkpoint(folder.path() / "c", {some_header(), {}});
  float value = 0;
  std::vector<NamedTensor> wanted;
  for (int i = 0; i < 20; ++i) wanted.push_back({fmt::format("t{}", i), TensorType::kFloat32, {}, &value});
  const std::string text = error_text([&] { load_checkpoint(folder.path() / "c", wanted, LoadWhat::kEverything); });
  EXPECT_THAT(text, HasSubstr("t0, t1, t2, t3, t4, t5, t6, t7 and 12 more"));
}

TEST(TrainingState, DamageOverwritesNothing) {
  TemporaryFolder folder;
  Model model;
  write_checkpoint(folder.path() / "c", {some_header(), model.views()});
  std::string bytes = read_file(folder.path() / "c");
  bytes[bytes.size() - 1] ^= 1;  // in the momentum, the last tensor
  write_file(folder.path() / "c", bytes);
  model.clear();
  EXPECT_THAT(error_text([&] { load_checkpoint(folder.path() / "c", model.views(), LoadWhat::kWeights); }),
              HasSubstr("does not match its checksum"));
  EXPECT_EQ(model.weight, std::vector<float>(6, 0.0F));
}

TEST(TrainingState, RefusesForeignAndNewerFiles) {
  TemporaryFolder folder;
  const auto header_of = [&](const std::map<std::string, std::string>& metadata) {
    write_safetensors(folder.path() / "f", metadata, {});
    return error_text([&] { read_checkpoint_header(SafetensorsFile(folder.path() / "f")); });
  };
  const std::string format = "simclr_train checkpoint";
  EXPECT_THAT(header_of({}), HasSubstr("not a simclr_train checkpoint"));
  EXPECT_THAT(header_of({{"format", "pt"}}), HasSubstr("not a simclr_train checkpoint"));
  EXPECT_THAT(header_of({{"format", format}}), HasSubstr("no 'format_version'"));
  EXPECT_THAT(header_of({{"format", format}, {"format_version", "2"}}),
              HasSubstr("version 2, this program reads version 1"));
  EXPECT_THAT(header_of({{"format", format}, {"format_version", "1"}}), HasSubstr("no 'step'"));
  for (const char* step : {"", "-1", "1.5", " 1", "1 ", "99999999999999999999"}) {
    EXPECT_THAT(header_of({{"format", format}, {"format_version", "1"}, {"step", step}}),
                HasSubstr("'step' of its metadata"));
  }
}

// "bias F32 [2]\n" + 1.0, -2.0 + "weight U8 [1, 3]\n" + 1, 2, 3 through Python's hashlib.
TEST(WeightsSha256, IsTheOneMadeByHand) {
  float bias[2] = {1.0F, -2.0F};
  uint8_t weight[3] = {1, 2, 3};
  float momentum = 5;
  const std::vector<NamedTensor> tensors = {{"weight", TensorType::kUint8, {1, 3}, weight},
                                            {"optimizer.momentum.bias", TensorType::kFloat32, {}, &momentum},
                                            {"bias", TensorType::kFloat32, {2}, bias}};
  const std::string expected = "447f9f779191a5ed75a0de6ab049db6bdb091cf3f75bf2a666daf648b4020353";
  EXPECT_EQ(weights_sha256(tensors), expected);
  momentum = 6;
  EXPECT_EQ(weights_sha256(tensors), expected) << "the optimizer's state does not count";

  TemporaryFolder folder;
  write_checkpoint(folder.path() / "c", {some_header(), tensors});
  EXPECT_EQ(weights_sha256(SafetensorsFile(folder.path() / "c")), expected);
}

TEST(WeightsSha256, SeesNamesShapesTypesAndBits) {
  std::vector<float> values = {0.0F, 1.0F};
  const auto hash = [&](const std::string& name, TensorType type, const TensorShape& shape) {
    return weights_sha256(std::vector<NamedTensor>{{name, type, shape, values.data()}});
  };
  const std::string reference = hash("a", TensorType::kFloat32, {2});
  EXPECT_NE(hash("b", TensorType::kFloat32, {2}), reference);
  EXPECT_NE(hash("a", TensorType::kFloat32, {1, 2}), reference);
  EXPECT_NE(hash("a", TensorType::kUint8, {8}), reference);
  values[0] = -0.0F;
  EXPECT_NE(hash("a", TensorType::kFloat32, {2}), reference) << "minus zero is another bit pattern";
}

}  // namespace
}  // namespace simclr
