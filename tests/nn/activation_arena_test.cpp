// The arena: what lives together never shares memory, what does not does, and a network's numbers do not depend on it.
#include "src/nn/activation_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "src/comm/single_process_collectives.h"
#include "src/nn/projector.h"
#include "src/nn/resnet.h"

namespace simclr {
namespace {

constexpr auto kBack = ActivationArena::backward_of;
constexpr size_t kFloats = kBufferAlignment / sizeof(float);  // that fill an aligned piece

TEST(ActivationArena, GivesPiecesThatLiveTogetherMemoryOfTheirOwn) {
  Context context(1);
  ActivationArena arena;
  struct Asked {
    int64_t elements;
    ActivationArena::Lifetime life;
    int piece = -1;
  };
  std::vector<Asked> all;
  uint32_t state = 1;
  const auto draw = [&](uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int i = 0; i < 60; ++i) {
    const int64_t first = draw(40), last = first + draw(20);
    all.push_back({.elements = 1 + draw(3000), .life = {first, last}});
    all.back().piece = arena.add(all.back().elements, all.back().life);
  }
  EXPECT_EQ(arena.data(0), nullptr);
  arena.allocate(context);
  size_t sum = 0;
  for (const Asked& a : all) {
    const float* begin = arena.data(a.piece).as<float>();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % kBufferAlignment, 0U);
    sum += static_cast<size_t>(a.elements) * sizeof(float);
    for (const Asked& b : all) {
      if (a.piece == b.piece || a.life.last < b.life.first || b.life.last < a.life.first) continue;
      const float* other = arena.data(b.piece).as<float>();
      EXPECT_TRUE(begin + a.elements <= other || other + b.elements <= begin) << a.piece << " and " << b.piece;
    }
  }
  EXPECT_LT(arena.bytes(), sum * 3 / 4);
}

// Forward of three layers, each kept until its turn in backward; gradients of the first take the place of the last.
TEST(ActivationArena, PutsTheGradientsOfTheFirstLayersWhereTheLastLayersWere) {
  Context context(1);
  ActivationArena arena;
  for (const int64_t size : {4, 4, 2, 2, 1, 1}) {
    const auto moment = arena.next();
    arena.add(size * static_cast<int64_t>(kFloats), {moment, kBack(moment)});
  }
  arena.add(4 * static_cast<int64_t>(kFloats), {kBack(1), kBack(0)});  // four layers are done by then: 6 units
  arena.allocate(context);
  EXPECT_EQ(arena.bytes(), 14 * kBufferAlignment);
}

TEST(ActivationArena, RefusesAPieceThatNeverLives) {
  ActivationArena arena;
  EXPECT_THROW(arena.add(1, {2, 1}), Error);
  EXPECT_THROW(arena.add(0, {1, 2}), Error);
}

// Nothing of what the memory held before a step may reach its numbers: neither the step before nor what another piece
// left in the padding of channels.
void expect_same_gradients_from_any_memory(const EncoderSettings& settings) {
  constexpr int64_t kShards = 2, kImages = 2, kSide = 12;
  Context context(1);
  SingleProcessCollectives collectives;
  ParameterStore store;
  ActivationArena arena;
  const LayerContext lc{context,
                        collectives,
                        store,
                        arena,
                        {.shards = kShards, .local_shards = kShards, .first_shard = 0, .images_per_shard = kImages},
                        BatchNormSettings{},
                        PlanChoices{}};
  ResNet net(lc, settings, kSide);
  const Projector projector(lc, {.hidden = 5, .output = 3}, net.out_features(), net.grad_h_read_at());
  store.allocate(context);
  arena.allocate(context);
  net.initialize(1);
  Images x{nullptr, kShards, 2 * kImages, 3, kSide, kSide};
  std::vector<float> images(x.elements());
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  x.data = images.data();
  const int64_t rows = lc.geometry.local_rows(), stride = padded_cols(net.out_features());
  std::vector<float> grad(rows * stride);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < net.out_features(); ++c) grad[i * stride + c] = static_cast<float>((i * 5 + c) % 7 - 3);
  const auto step = [&] {
    net.forward(Mode::kTrain, x);
    net.backward(ConstMatrix{grad.data(), rows, net.out_features(), stride}, ignore_ready);
    const auto all = store.gradients();
    return std::vector<float>(all.begin(), all.end());
  };
  const std::vector<float> first = step();
  EXPECT_EQ(step(), first);
  std::memset(arena.memory().data(), 0xff, arena.bytes());  // NaN everywhere
  EXPECT_EQ(step(), first);
}

TEST(ActivationArena, GivesANetworkTheSameGradientsFromAnyMemory) {
  expect_same_gradients_from_any_memory({.depth = 10, .width = 3, .stem = Stem::kCifar});
  expect_same_gradients_from_any_memory({.depth = 18, .width = 4, .stem = Stem::kImagenet});
  expect_same_gradients_from_any_memory({.depth = 50, .width = 2, .stem = Stem::kCifar});
}

}  // namespace
}  // namespace simclr
