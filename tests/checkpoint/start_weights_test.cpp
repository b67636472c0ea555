// Weights to start from: what of a file is taken, what is refused by name, and that a refused file changes nothing.
#include "src/checkpoint/start_weights.h"

#include <gmock/gmock.h>

#include <limits>

#include "src/checkpoint/training_state.h"
#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

constexpr TensorType kF32 = TensorType::kFloat32;

// A network of one convolution with its batch norm, a projector, and momentum that no file may reach.
struct Network {
  std::vector<float> weight = std::vector<float>(6, -1), mean = {-1, -1}, projector = {-1, -1}, momentum = {-1};

  std::vector<NamedTensor> tensors() {
    return {{"conv1.weight", kF32, {2, 3}, weight.data()},
            {"bn1.running_mean", kF32, {2}, mean.data()},
            {"projector.0.weight", kF32, {1, 2}, projector.data()},
            {"optimizer.momentum.conv1.weight", kF32, {1}, momentum.data()}};
  }
  bool untouched() {
    for (const auto* v : {&weight, &mean, &projector, &momentum})
      for (const float x : *v)
        if (x != -1) return false;
    return true;
  }
};

class StartWeightsTest : public testing::Test {
 protected:
  std::vector<float> six = {1, 2, 3, 4, 5, 6}, two = {7, 8};
  std::vector<double> doubles = {1, 2};
  int64_t count = 10;
  std::vector<NamedTensor> file = {{"conv1.weight", kF32, {2, 3}, six.data()},
                                   {"bn1.running_mean", kF32, {2}, two.data()}};
  Network network;

  StartWeights load() {
    write_safetensors(path(), {}, file);
    return load_start_weights(path(), network.tensors());
  }
  std::string refusal() {
    const std::string text = error_text([&] { load(); });
    EXPECT_THAT(text, HasSubstr("model.init_from: " + path().string()));
    EXPECT_TRUE(network.untouched());
    return text;
  }
  std::filesystem::path path() const { return folder_.path() / "w.safetensors"; }

 private:
  TemporaryFolder folder_;
};

TEST_F(StartWeightsTest, TakesAnEncoderAndLeavesTheProjectorAsItIs) {
  const StartWeights start = load();
  EXPECT_EQ(network.weight, six);
  EXPECT_EQ(network.mean, two);
  EXPECT_EQ(network.projector, (std::vector<float>{-1, -1}));
  EXPECT_EQ(network.momentum, std::vector<float>{-1});
  EXPECT_FALSE(start.projector);
  EXPECT_EQ(start.sha256, weights_sha256(file));
}

TEST_F(StartWeightsTest, TakesAProjectorAndIgnoresOtherTensors) {
  file.push_back({"projector.0.weight", kF32, {1, 2}, two.data()});
  const std::string hash = weights_sha256(file);
  file.push_back({"bn1.num_batches_tracked", TensorType::kInt64, {}, &count});
  file.push_back({"fc.weight", kF32, {3, 2}, six.data()});
  file.push_back({"optimizer.momentum.conv1.weight", kF32, {1}, two.data()});
  const StartWeights start = load();
  EXPECT_TRUE(start.projector);
  EXPECT_EQ(network.projector, two);
  EXPECT_EQ(network.momentum, std::vector<float>{-1});
  EXPECT_EQ(start.left_out, std::vector<std::string>{"fc.weight"});
  EXPECT_EQ(start.sha256, hash);
}

TEST_F(StartWeightsTest, RefusesByNameWhatIsMissingExtraOrDifferent) {
  file[0].shape = {3, 2};
  EXPECT_THAT(refusal(), HasSubstr("different: conv1.weight (F32 [3, 2] in the file, F32 [2, 3] expected); set "
                                   "model.encoder as in the run that wrote it, or name another file"));
  file[0].shape = {2, 3};
  file[1].name = "backbone.bn1.running_mean";
  EXPECT_THAT(refusal(),
              HasSubstr("missing in the file: bn1.running_mean; only in the file: backbone.bn1.running_mean;"));
  file[1] = {"bn1.running_mean", TensorType::kFloat64, {2}, doubles.data()};
  EXPECT_THAT(refusal(), HasSubstr("bn1.running_mean (F64 [2] in the file, F32 [2] expected)"));
  file[1] = {"bn1.running_mean", kF32, {2}, two.data()};
  file.push_back({"projector.2.weight", kF32, {2}, two.data()});  // of a deeper projector
  EXPECT_THAT(refusal(),
              HasSubstr("missing in the file: projector.0.weight; only in the file: projector.2.weight; set "
                        "model.encoder and model.projector as in the run that wrote it, or use its encoder alone"));
}

TEST_F(StartWeightsTest, RefusesValuesThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    two[1] = bad;
    EXPECT_THAT(error_text([&] { load(); }), HasSubstr("a value of bn1.running_mean is not finite"));
  }
}

TEST_F(StartWeightsTest, RefusesADamagedOrForeignFile) {
  load();
  network = {};
  const std::string bytes = read_file(path());
  for (const size_t place : {size_t{0}, size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    write_file(path(), damaged);
    error_text([&] { load_start_weights(path(), network.tensors()); });
    EXPECT_TRUE(network.untouched()) << place;
  }
  for (const std::string& text :
       {std::string(), std::string("PK\3\4 a zip archive, as torch.save writes"), bytes.substr(0, 40)}) {
    write_file(path(), text);
    EXPECT_THAT(error_text([&] { load_start_weights(path(), network.tensors()); }), HasSubstr(path().string()));
    EXPECT_TRUE(network.untouched());
  }
}

}  // namespace
}  // namespace simclr
