// Names and shapes of a model's weights: torchvision's, so that its users can load what this program exports.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/comm/single_process_collectives.h"
#include "tests/nn/network_support.h"

namespace simclr {
namespace {

using Shape = std::vector<int64_t>;
using Named = std::vector<std::pair<std::string, Shape>>;

struct ConvAndNorm {
  std::string conv, norm;
  Shape shape;  // OIHW of conv.weight
};

// The state_dict of torchvision.models.resnet18 as pairs of a convolution and its batch norm, without the classifier
// `fc` and the counters `num_batches_tracked`. The stem is that of the cifar variant, 3x3 (torchvision's is 7x7).
const std::vector<ConvAndNorm> kResNet18 = {
    {"conv1", "bn1", {64, 3, 3, 3}},
    {"layer1.0.conv1", "layer1.0.bn1", {64, 64, 3, 3}},
    {"layer1.0.conv2", "layer1.0.bn2", {64, 64, 3, 3}},
    {"layer1.1.conv1", "layer1.1.bn1", {64, 64, 3, 3}},
    {"layer1.1.conv2", "layer1.1.bn2", {64, 64, 3, 3}},
    {"layer2.0.conv1", "layer2.0.bn1", {128, 64, 3, 3}},
    {"layer2.0.conv2", "layer2.0.bn2", {128, 128, 3, 3}},
    {"layer2.0.downsample.0", "layer2.0.downsample.1", {128, 64, 1, 1}},
    {"layer2.1.conv1", "layer2.1.bn1", {128, 128, 3, 3}},
    {"layer2.1.conv2", "layer2.1.bn2", {128, 128, 3, 3}},
    {"layer3.0.conv1", "layer3.0.bn1", {256, 128, 3, 3}},
    {"layer3.0.conv2", "layer3.0.bn2", {256, 256, 3, 3}},
    {"layer3.0.downsample.0", "layer3.0.downsample.1", {256, 128, 1, 1}},
    {"layer3.1.conv1", "layer3.1.bn1", {256, 256, 3, 3}},
    {"layer3.1.conv2", "layer3.1.bn2", {256, 256, 3, 3}},
    {"layer4.0.conv1", "layer4.0.bn1", {512, 256, 3, 3}},
    {"layer4.0.conv2", "layer4.0.bn2", {512, 512, 3, 3}},
    {"layer4.0.downsample.0", "layer4.0.downsample.1", {512, 256, 1, 1}},
    {"layer4.1.conv1", "layer4.1.bn1", {512, 512, 3, 3}},
    {"layer4.1.conv2", "layer4.1.bn2", {512, 512, 3, 3}},
};

struct StateDict {
  Named parameters, buffers;

  void add_norm(const std::string& name, int64_t channels) {
    for (const char* p : {".weight", ".bias"}) parameters.emplace_back(name + p, Shape{channels});
    for (const char* b : {".running_mean", ".running_var"}) buffers.emplace_back(name + b, Shape{channels});
  }
  void add_encoder(const std::vector<ConvAndNorm>& layers) {
    for (const auto& l : layers) {
      parameters.emplace_back(l.conv + ".weight", l.shape);
      add_norm(l.norm, l.shape[0]);
    }
  }
};

template <typename Entries>
Named sorted(const Entries& entries) {
  Named out;
  for (const auto& [name, shape] : entries) out.emplace_back(name, shape);
  std::sort(out.begin(), out.end());
  return out;
}
Named sorted_store(const auto& entries) {
  Named out;
  for (const auto& e : entries) {
    int64_t elements = 1;
    for (const int64_t d : e.shape) elements *= d;
    EXPECT_EQ(e.elements, elements) << e.name;
    out.emplace_back(e.name, e.shape);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void expect_state(const test::NetworkCase& c, const StateDict& want) {
  SingleProcessCollectives one;
  test::RankNetwork net(c, one);
  EXPECT_EQ(sorted_store(net.store().parameters()), sorted(want.parameters));
  EXPECT_EQ(sorted_store(net.store().buffers()), sorted(want.buffers));
}

test::NetworkCase small_batch(EncoderSettings encoder, ProjectorSettings projector) {
  return {.name = "", .encoder = encoder, .projector = projector, .shards = 1, .images_per_shard = 1};
}

TEST(ModelNames, ResNet18) {
  StateDict want;
  want.add_encoder(kResNet18);
  want.parameters.emplace_back("projector.0.weight", Shape{512, 512});
  want.add_norm("projector.1", 512);
  want.parameters.emplace_back("projector.3.weight", Shape{128, 512});
  want.parameters.emplace_back("projector.3.bias", Shape{128});
  expect_state(small_batch(EncoderSettings{}, ProjectorSettings{}), want);  // the defaults
}

// Depth 10 has the first block of each stage; width scales every channel number but the images' three.
TEST(ModelNames, ResNet10OfAnotherWidthAndStem) {
  StateDict want;
  std::vector<ConvAndNorm> layers;
  for (ConvAndNorm l : kResNet18) {
    if (l.conv.find(".1.conv") != std::string::npos) continue;
    l.shape[0] /= 8;
    if (l.conv == "conv1")
      l.shape = {8, 3, 7, 7};
    else
      l.shape[1] /= 8;
    layers.push_back(l);
  }
  ASSERT_EQ(layers.size(), 12u);
  want.add_encoder(layers);
  // Three layers without batch norm: Linear, ReLU, Linear, ReLU, Linear.
  for (const auto& [name, shape] : Named{{"0", {20, 64}}, {"2", {20, 20}}, {"4", {6, 20}}}) {
    want.parameters.emplace_back("projector." + name + ".weight", shape);
    want.parameters.emplace_back("projector." + name + ".bias", Shape{shape[0]});
  }
  expect_state(small_batch({.depth = 10, .width = 8, .stem = Stem::kImagenet},
                           {.layers = 3, .hidden = 20, .output = 6, .batch_norm = false}),
               want);
}

// The state_dict of torchvision.models.resnet50 (v1.5), likewise: its regular part by rule, its sizes by hand.
TEST(ModelNames, ResNet50) {
  StateDict want;
  std::vector<ConvAndNorm> layers = {{"conv1", "bn1", {64, 3, 7, 7}}};
  const int blocks[] = {3, 4, 6, 3};
  const int64_t planes[] = {64, 128, 256, 512}, in[] = {64, 256, 512, 1024};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t narrow = planes[stage], wide = 4 * narrow;
    for (int i = 0; i < blocks[stage]; ++i) {
      const std::string name = fmt::format("layer{}.{}.", stage + 1, i);
      layers.push_back({name + "conv1", name + "bn1", {narrow, i == 0 ? in[stage] : wide, 1, 1}});
      layers.push_back({name + "conv2", name + "bn2", {narrow, narrow, 3, 3}});
      layers.push_back({name + "conv3", name + "bn3", {wide, narrow, 1, 1}});
      if (i == 0) layers.push_back({name + "downsample.0", name + "downsample.1", {wide, in[stage], 1, 1}});
    }
  }
  ASSERT_EQ(layers.size(), 53u);
  want.add_encoder(layers);
  want.parameters.emplace_back("projector.0.weight", Shape{16, 2048});
  want.parameters.emplace_back("projector.0.bias", Shape{16});
  auto c = small_batch({.depth = 50, .stem = Stem::kImagenet}, {.layers = 1, .hidden = 16, .output = 16});
  c.image_size = 32;
  expect_state(c, want);
  SingleProcessCollectives one;
  test::RankNetwork net(c, one);
  EXPECT_EQ(net.model().representation_size(), 2048);
  // torchvision's resnet50 has 25,557,032 parameters, of which its classifier has 2,049,000.
  EXPECT_EQ(net.store().element_count() - (16 * 2048 + 16), 25557032 - 2049000);
}

TEST(ModelNames, DepthsHaveTheSizesOfTorchvision) {
  SingleProcessCollectives one;
  // Parameters of torchvision's models without their classifiers of 513,000.
  for (const auto& [depth, elements] : {std::pair{18, 11689512 - 513000}, std::pair{34, 21797672 - 513000}}) {
    auto c = small_batch({.depth = depth, .stem = Stem::kImagenet}, {.layers = 1, .hidden = 16, .output = 16});
    c.image_size = 32;
    test::RankNetwork net(c, one);
    EXPECT_EQ(net.store().element_count() - (16 * 512 + 16), elements) << depth;
  }
}

TEST(ModelNames, ProjectorOfThreeLayersWithBatchNorm) {
  StateDict want;
  for (const auto& [name, shape] : Named{{"0", {20, 64}}, {"3", {20, 20}}, {"6", {6, 20}}})
    want.parameters.emplace_back("projector." + name + ".weight", shape);
  want.parameters.emplace_back("projector.6.bias", Shape{6});
  want.add_norm("projector.1", 20);
  want.add_norm("projector.4", 20);
  SingleProcessCollectives one;
  test::RankNetwork net(small_batch({.depth = 10, .width = 8}, {.layers = 3, .hidden = 20, .output = 6}), one);
  Named got;
  for (const auto& entry : sorted_store(net.store().parameters()))
    if (entry.first.starts_with("projector")) got.push_back(entry);
  EXPECT_EQ(got, sorted(want.parameters));
}

TEST(ModelNames, OnlyBatchNormGradientsAreGlobalAlready) {
  SingleProcessCollectives one;
  test::RankNetwork net(small_batch({.depth = 10, .width = 8}, {.layers = 2, .hidden = 20, .output = 6}), one);
  for (const auto& p : net.store().parameters()) {
    const bool norm = p.one_dimensional() && p.name != "projector.3.bias";
    EXPECT_EQ(p.scope == GradientScope::kGlobal, norm) << p.name;
  }
}

TEST(ModelNames, RepresentationAndWorkOfOneStep) {
  SingleProcessCollectives one;
  auto c = small_batch({.depth = 10, .width = 8}, {.layers = 2, .hidden = 20, .output = 6});
  c.shards = 4;
  test::RankNetwork net(c, one);
  EXPECT_EQ(net.model().representation_size(), 64);
  // Multiply-adds of one image of 8x8: places * out * in * kernel^2, stage by stage.
  const double encoder = 64 * 8 * 3 * 9 + 2 * 64 * 8 * 8 * 9  // stem, layer1
                         + 16 * 16 * (8 * 9 + 16 * 9 + 8)     // layer2: conv1, conv2, downsample
                         + 4 * 32 * (16 * 9 + 32 * 9 + 16) + 1 * 64 * (32 * 9 + 64 * 9 + 32);
  const double projector = 20 * 64 + 6 * 20;
  EXPECT_DOUBLE_EQ(net.model().step_flops(), 3 * 2 * 8 * (encoder + projector));  // 8 views; 3 passes; 2 flops each
}

TEST(ModelNames, AnUnknownDepthIsAUsageError) {
  try {
    resnet_blocks(11);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_THAT(e.what(), testing::HasSubstr("depth 11"));
  }
}

}  // namespace
}  // namespace simclr
