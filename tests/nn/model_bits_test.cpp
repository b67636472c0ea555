// What the network promises to the bit: the same results on 1, 2, 4 and 8 ranks with 1 and 2 threads, an encode() that
// leaves no trace, a skip flag that guards the running statistics, and padding that stays zero.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/comm/single_process_collectives.h"
#include "tests/harness/thread_collectives.h"
#include "tests/nn/network_support.h"

namespace simclr::test {
namespace {

using test::same_bits;

NetworkCase joint_case() {
  return {.name = "CifarJoint",
          .encoder = {.depth = 10, .width = 16},
          .projector = {.layers = 2, .hidden = 24, .output = 16},
          .shards = 8,
          .images_per_shard = 2};
}
NetworkCase separate_case() {
  return {.name = "OddSeparate",
          .encoder = {.depth = 10, .width = 10},
          .projector = {.layers = 3, .hidden = 19, .output = 5},
          .batch_norm = {.views = BatchNormViews::kSeparate},
          .image_size = 5,
          .shards = 8,
          .images_per_shard = 1};
}
NetworkCase imagenet_case() {
  return {.name = "ImagenetNoProjectorNorm",
          .encoder = {.depth = 10, .width = 8, .stem = Stem::kImagenet},
          .projector = {.layers = 2, .hidden = 24, .output = 6, .batch_norm = false},
          .image_size = 12,
          .shards = 8,
          .images_per_shard = 2};
}
// Bottlenecks; the 3x3 convolution of a first block has fewer channels than what the block takes in and gives out.
NetworkCase bottleneck_case() {
  return {.name = "Bottlenecks",
          .encoder = {.depth = 50, .width = 4, .zero_init_residual = true},
          .projector = {.layers = 2, .hidden = 24, .output = 6},
          .shards = 8,
          .images_per_shard = 1};
}

// Two training steps and an evaluation, as one rank sees them.
struct Outcome {
  std::vector<float> z, encoded;                  // of the rank's rows
  std::vector<float> gradients, values, running;  // global
};

Outcome train(const NetworkCase& c, Collectives& collectives, int threads) {
  RankNetwork net(c, collectives, threads);
  net.randomize_vectors();
  net.step(1);
  Outcome out;
  out.z = net.step(2);  // after weights and statistics of one step, which carry its bits on
  out.encoded = dense(net.model().encode(net.images(3)));
  out.gradients = net.gradients();
  out.values = net.values();
  out.running = net.running_statistics();
  return out;
}

// The rank's rows of something that has `size` rows' worth in all.
std::span<const float> rows_of(const std::vector<float>& all, const Collectives& c) {
  const size_t each = all.size() / static_cast<size_t>(c.size());
  return std::span(all).subspan(each * static_cast<size_t>(c.rank()), each);
}

class ModelBits : public testing::TestWithParam<NetworkCase> {};

TEST_P(ModelBits, SameForEveryNumberOfRanksAndThreads) {
  SingleProcessCollectives one;
  const Outcome want = train(GetParam(), one, 1);
  for (const int ranks : {1, 2, 4, 8}) {
    for (const int threads : {1, 2}) {
      run_ranks(ranks, [&](Collectives& c) {
        const Outcome got = train(GetParam(), c, threads);
        const std::string where = fmt::format("rank {} of {}, {} threads", c.rank(), ranks, threads);
        EXPECT_TRUE(same_bits(got.z, rows_of(want.z, c))) << "z, " << where;
        EXPECT_TRUE(same_bits(got.encoded, rows_of(want.encoded, c))) << "encode(), " << where;
        EXPECT_TRUE(same_bits(got.gradients, want.gradients)) << "gradients, " << where;
        EXPECT_TRUE(same_bits(got.values, want.values)) << "weights, " << where;
        EXPECT_TRUE(same_bits(got.running, want.running)) << "running statistics, " << where;
      });
    }
  }
}

// A rank that forgot the other ranks' part would still agree with itself.
TEST_P(ModelBits, EveryShardCounts) {
  SingleProcessCollectives one;
  RankNetwork net(GetParam(), one);
  net.forward_backward(1);
  const auto gradients = net.gradients();
  auto half = GetParam();
  half.shards /= 2;
  RankNetwork other(half, one);
  other.forward_backward(1);
  EXPECT_FALSE(same_bits(other.gradients(), gradients));
}

INSTANTIATE_TEST_SUITE_P(Networks, ModelBits,
                         testing::Values(joint_case(), separate_case(), imagenet_case(), bottleneck_case()),
                         [](const auto& it) { return it.param.name; });

TEST(Model, EncodeLeavesNoTraceInTheTrainingThatFollows) {
  SingleProcessCollectives one;
  for (const auto& c : {joint_case(), separate_case(), imagenet_case()}) {
    RankNetwork plain(c, one), watched(c, one);
    plain.step(1);
    watched.step(1);
    const auto gradients = watched.gradients();
    watched.model().encode(watched.images(9));
    EXPECT_TRUE(same_bits(watched.values(), plain.values())) << c.name;
    EXPECT_TRUE(same_bits(watched.running_statistics(), plain.running_statistics())) << c.name;
    EXPECT_TRUE(same_bits(watched.gradients(), gradients)) << c.name;

    EXPECT_TRUE(same_bits(watched.step(2), plain.step(2))) << c.name;
    EXPECT_TRUE(same_bits(watched.gradients(), plain.gradients())) << c.name;
    EXPECT_TRUE(same_bits(watched.values(), plain.values())) << c.name;
    EXPECT_TRUE(same_bits(watched.running_statistics(), plain.running_statistics())) << c.name;
  }
}

TEST(Model, EncodeCommunicatesWithNoRankAndSeesEachSampleAlone) {
  struct Silent : ForwardingCollectives {
    using ForwardingCollectives::ForwardingCollectives;
    void ordered_sum(TypedSpan) override { ++sums; }
    int sums = 0;
  };
  SingleProcessCollectives one;
  Silent silent(one);
  const auto c = separate_case();
  RankNetwork net(c, silent);
  net.randomize_vectors();
  const auto h = dense(net.model().encode(net.images(1)));
  EXPECT_EQ(silent.sums, 0);
  // Another last image changes the last row and no other.
  ConstImages x = net.images(1);
  std::vector<float> changed(x.data.as<float>(), x.data.as<float>() + x.elements());
  changed.back() += 1.0F;
  x.data = changed.data();
  const auto other = dense(net.model().encode(x));
  const size_t last = h.size() - static_cast<size_t>(net.model().representation_size());
  EXPECT_TRUE(same_bits(std::span(other).first(last), std::span(h).first(last)));
  EXPECT_FALSE(same_bits(other, h));
}

TEST(Model, SkipFlagGuardsTheRunningStatistics) {
  SingleProcessCollectives one;
  for (const auto& c : {joint_case(), separate_case()}) {
    RankNetwork net(c, one);
    net.randomize_vectors();
    const auto before = net.running_statistics();
    net.forward_backward(1);
    EXPECT_TRUE(same_bits(net.running_statistics(), before)) << c.name << ": forward and backward change nothing";
    int skip = 1;
    net.model().update_running_statistics(&skip);
    EXPECT_TRUE(same_bits(net.running_statistics(), before)) << c.name;
    skip = 0;
    net.model().update_running_statistics(&skip);
    const auto after = net.running_statistics();
    size_t same = 0;
    for (size_t k = 0; k < after.size(); ++k) same += after[k] == before[k];
    EXPECT_EQ(same, 0u) << c.name << ": every statistic moves";
  }
}

TEST(Model, NonFiniteImagesShowInZAndInTheGradients) {
  SingleProcessCollectives one;
  const auto c = joint_case();
  RankNetwork net(c, one);
  ConstImages x = net.images(1);
  std::vector<float> changed(x.data.as<float>(), x.data.as<float>() + x.elements());
  changed[0] = test::kNaN;
  x.data = changed.data();
  const auto z = dense(net.model().forward(x));
  EXPECT_TRUE(std::any_of(z.begin(), z.end(), [](float v) { return std::isnan(v); }));
  net.model().backward(net.grad_z(1));
  const auto& conv1 = net.store().parameters().front();
  EXPECT_TRUE(std::isnan(conv1.grad[0])) << conv1.name;
}

TEST(Model, PaddingAndGapsStayZero) {
  SingleProcessCollectives one;
  const auto c = separate_case();  // channels 10, 20, 40, 80; 19 hidden, 5 outputs
  RankNetwork net(c, one);
  net.randomize_vectors();
  net.step(1);
  const ConstMatrix h = net.model().encode(net.images(2));
  EXPECT_EQ(h.cols, 80);
  EXPECT_TRUE(padding_is_zero(h));
  const ConstMatrix z = net.model().forward(net.images(2));
  ASSERT_EQ(z.cols, 5);
  ASSERT_GT(z.stride, z.cols);
  EXPECT_TRUE(padding_is_zero(z));
  net.model().backward(net.grad_z(2));

  const auto all = net.store().gradients();
  std::vector<bool> owned(all.size(), false);
  for (const auto& p : net.store().parameters()) std::fill_n(owned.begin() + (p.grad - all.data()), p.elements, true);
  size_t gaps = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    if (owned[k]) continue;
    ASSERT_EQ(all[k], 0.0F) << k;
    ++gaps;
  }
  EXPECT_GT(gaps, 0u);
}

}  // namespace
}  // namespace simclr::test
