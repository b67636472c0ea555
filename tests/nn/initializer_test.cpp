// Initial weights: the distributions within statistical bounds (five standard errors of each estimate), and that a
// weight is a function of (seed, name, element) alone.
#include "src/nn/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/comm/single_process_collectives.h"
#include "tests/harness/thread_collectives.h"
#include "tests/nn/network_support.h"

namespace simclr {
namespace {

struct Drawn {
  std::vector<float> values;
  Parameter parameter;

  Drawn(std::string name, std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    values.assign(static_cast<size_t>(n) + 1, test::kNaN);  // one element past the end, to detect writes there
    parameter = {.name = std::move(name), .shape = std::move(shape), .elements = n, .value = values.data()};
  }
  std::span<const float> all() const { return {values.data(), values.size() - 1}; }
  bool wrote_exactly_its_elements() const {
    return std::isnan(values.back()) && std::none_of(all().begin(), all().end(), [](float v) { return std::isnan(v); });
  }
};

Drawn kaiming(const std::string& name, std::vector<int64_t> shape, uint64_t seed) {
  Drawn d(name, std::move(shape));
  initialize_kaiming_normal(Context(1), d.parameter, seed);
  return d;
}
Drawn uniform(const std::string& name, std::vector<int64_t> shape, int64_t fan_in, uint64_t seed) {
  Drawn d(name, std::move(shape));
  initialize_uniform(Context(1), d.parameter, fan_in, seed);
  return d;
}

double moment(std::span<const float> x, int power) {
  double sum = 0;
  for (const float v : x) sum += std::pow(v, power);
  return sum / static_cast<double>(x.size());
}

double correlation(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum / static_cast<double>(x.size()) / std::sqrt(moment(x, 2) * moment(y, 2));
}

// Normal with the given deviation: the first four moments. Standard errors for n samples of N(0, s): mean s/sqrt(n),
// variance s^2 sqrt(2/n), third moment s^3 sqrt(15/n), fourth s^4 sqrt(96/n).
void expect_normal(std::span<const float> x, double s, const std::string& what) {
  const double five = 5.0 / std::sqrt(static_cast<double>(x.size()));
  EXPECT_NEAR(moment(x, 1), 0.0, five * s) << what;
  EXPECT_NEAR(moment(x, 2), s * s, five * s * s * std::sqrt(2.0)) << what;
  EXPECT_NEAR(moment(x, 3), 0.0, five * s * s * s * std::sqrt(15.0)) << what;
  EXPECT_NEAR(moment(x, 4), 3.0 * s * s * s * s, five * s * s * s * s * std::sqrt(96.0)) << what;
}

TEST(Initializer, KaimingNormalHasFanOutDeviation) {
  // fan_out = out * kernel^2, whatever the number of inputs: sqrt(2 / (32 * 9)) = 1/12
  expect_normal(kaiming("a", {32, 64, 3, 3}, 1).all(), 1.0 / 12.0, "3x3");
  expect_normal(kaiming("b", {128, 64, 1, 1}, 1).all(), 1.0 / 8.0, "1x1");
}

TEST(Initializer, UniformFillsItsInterval) {
  const Drawn d = uniform("projector.0.weight", {100, 64}, 64, 1);
  const double bound = 1.0 / 8.0;  // 1/sqrt(64)
  const double five = 5.0 / std::sqrt(6400.0);
  const auto [low, high] = std::minmax_element(d.all().begin(), d.all().end());
  EXPECT_GE(*low, -bound);
  EXPECT_LE(*high, bound);
  EXPECT_LT(*low, -0.995 * bound);  // 6400 draws: the chance to miss a 400th of the interval is e^-16
  EXPECT_GT(*high, 0.995 * bound);
  EXPECT_NEAR(moment(d.all(), 1), 0.0, five * bound / std::sqrt(3.0));
  EXPECT_NEAR(moment(d.all(), 2), bound * bound / 3.0, five * bound * bound * std::sqrt(4.0 / 45.0));
}

TEST(Initializer, WritesAnOddNumberOfElementsAndNoMore) {
  EXPECT_TRUE(kaiming("a", {3, 1, 3, 3}, 1).wrote_exactly_its_elements());
  EXPECT_TRUE(uniform("a", {7}, 4, 1).wrote_exactly_its_elements());
  Drawn d("a", {7});
  initialize_constant(Context(1), d.parameter, 0.5F);
  EXPECT_TRUE(d.wrote_exactly_its_elements());
  EXPECT_EQ(d.values[6], 0.5F);
}

// The formulas of kernels/initializer written out for one element at a time: what a checkpoint's first weights are.
TEST(Initializer, IsTheFormulaOfSeedNameAndElement) {
  constexpr uint64_t kSeed = 0x123456789;
  const PhiloxKey key = philox_key(kSeed, RandomPurpose::kInitialWeights);
  const uint64_t name = 0xaf63dc4c8601ec8c;  // FNV-1a of "a"
  const auto words_of = [&](uint32_t pair) {
    return philox4x32({pair, 0, static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)}, key);
  };
  const auto unit = [](uint32_t high, uint32_t low) {
    return std::ldexp(static_cast<double>(uint64_t{high} << 21 | low >> 11) + 1.0, -53);
  };
  const Drawn normal = kaiming("a", {8, 500, 3, 3}, kSeed), even = uniform("a", {36000}, 9, kSeed);
  for (uint32_t i = 0; i < 36000; ++i) {  // more than one thread takes at a time
    const PhiloxCounter words = words_of(i / 2);
    const double u = unit(words[0], words[1]), v = unit(words[2], words[3]);
    const double radius = std::sqrt(2.0 / 72.0) * std::sqrt(-2.0 * std::log(u)), angle = 2.0 * std::numbers::pi * v;
    ASSERT_EQ(normal.values[i], static_cast<float>(radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)))) << i;
    ASSERT_EQ(even.values[i], static_cast<float>(1.0 / 3.0 * (2.0 * (i % 2 == 0 ? u : v) - 1.0))) << i;
  }
}

TEST(Initializer, AnyNumberOfThreadsGivesTheSameBits) {
  const Drawn one = kaiming("a", {64, 64, 3, 3}, 5);
  std::vector<float> values(one.values.size(), test::kNaN);
  Parameter p = one.parameter;
  p.value = values.data();
  initialize_kaiming_normal(Context(3), p, 5);
  EXPECT_TRUE(test::same_bits(std::span<const float>(values).first(values.size() - 1), one.all()));
}

TEST(Initializer, SameNameAndSeedGiveSameBits) {
  EXPECT_TRUE(test::same_bits(kaiming("a", {8, 4, 3, 3}, 5).all(), kaiming("a", {8, 4, 3, 3}, 5).all()));
  EXPECT_TRUE(test::same_bits(uniform("a", {8, 4}, 4, 5).all(), uniform("a", {8, 4}, 4, 5).all()));
}

TEST(Initializer, AnotherNameOrSeedGivesUnrelatedNumbers) {
  const std::vector<int64_t> shape{32, 32, 3, 3};
  const Drawn base = kaiming("layer1.0.conv1.weight", shape, 1);
  const double five = 5.0 / std::sqrt(32.0 * 32 * 9);
  for (const auto& other : {kaiming("layer1.0.conv2.weight", shape, 1), kaiming("layer1.0.conv1.weight", shape, 2),
                            kaiming("layer1.0.conv1.weight", shape, 1 + (uint64_t{1} << 32))})
    EXPECT_LT(std::fabs(correlation(base.all(), other.all())), five);
  // Neighbors within one parameter are unrelated too: both normals of a Box-Muller pair, and pair after pair.
  for (const size_t lag : {1u, 2u, 4u}) {
    const auto x = base.all();
    EXPECT_LT(std::fabs(correlation(x.first(x.size() - lag), x.subspan(lag))), five) << lag;
  }
}

TEST(Initializer, RefusesAMatrixAsAConvolution) {
  Drawn d("projector.0.weight", {4, 4});
  EXPECT_THAT([&] { initialize_kaiming_normal(Context(1), d.parameter, 1); },
              test::fires("projector.0.weight is not a convolution"));
}

// The whole model: which parameter is drawn how.
test::NetworkCase wide_case() {
  return {.name = "wide",
          .encoder = {.depth = 10, .width = 16},
          .projector = {.layers = 3, .hidden = 40, .output = 24, .batch_norm = false},
          .shards = 4,
          .images_per_shard = 1};
}

float first_value(const Parameter& p) {
  return p.value[0];
}
bool is_constant(const Parameter& p, float value) {
  return std::all_of(p.value, p.value + p.elements, [&](float v) { return v == value; });
}

TEST(ModelInitialization, DrawsEveryParameterAsTorchvisionDoes) {
  SingleProcessCollectives one;
  test::RankNetwork net(wide_case(), one);
  for (const auto& p : net.store().parameters()) {
    const std::span<const float> x(p.value, p.elements);
    if (p.shape.size() == 4) {
      expect_normal(x, std::sqrt(2.0 / static_cast<double>(p.shape[0] * p.shape[2] * p.shape[3])), p.name);
    } else if (p.name.starts_with("projector")) {  // weight [out, in] and bias [out] of a linear layer
      const bool first = p.name.starts_with("projector.0");
      const double bound = 1.0 / std::sqrt(first ? 128.0 : 40.0);
      for (const float v : x) ASSERT_LE(std::fabs(v), bound) << p.name;
      EXPECT_NEAR(moment(x, 2), bound * bound / 3.0,
                  5.0 * bound * bound * std::sqrt(4.0 / 45.0 / static_cast<double>(p.elements)))
          << p.name;
    } else {
      EXPECT_TRUE(is_constant(p, p.name.ends_with(".weight") ? 1.0F : 0.0F)) << p.name;
    }
  }
  for (const auto& b : net.store().buffers())
    for (int64_t k = 0; k < b.elements; ++k) ASSERT_EQ(b.value[k], b.name.ends_with("_var") ? 1.0F : 0.0F) << b.name;
}

TEST(ModelInitialization, ZeroInitResidualZeroesTheLastBatchNormOfEachBlockAlone) {
  SingleProcessCollectives one;
  auto c = wide_case();
  c.encoder.zero_init_residual = true;
  test::RankNetwork net(c, one);
  int zeroed = 0;
  for (const auto& p : net.store().parameters()) {
    const bool last = p.name.starts_with("layer") && p.name.ends_with(".bn2.weight");
    if (last) {
      EXPECT_TRUE(is_constant(p, 0.0F)) << p.name;
      ++zeroed;
    } else if (p.name.ends_with(".weight")) {
      EXPECT_NE(first_value(p), 0.0F) << p.name;
    }
  }
  EXPECT_EQ(zeroed, 4);
}

TEST(ModelInitialization, ZeroInitResidualOfBottlenecksIsTheThirdBatchNorm) {
  SingleProcessCollectives one;
  auto c = wide_case();
  c.encoder = {.depth = 50, .width = 2, .zero_init_residual = true};
  test::RankNetwork net(c, one);
  int zeroed = 0;
  for (const auto& p : net.store().parameters()) {
    if (!p.name.ends_with(".weight")) continue;
    const bool last = p.name.starts_with("layer") && p.name.ends_with(".bn3.weight");
    EXPECT_EQ(is_constant(p, 0.0F), last) << p.name;
    zeroed += last ? 1 : 0;
  }
  EXPECT_EQ(zeroed, 3 + 4 + 6 + 3);
}

TEST(ModelInitialization, EveryRankMakesTheSameWeightsAndTheSeedChangesThem) {
  SingleProcessCollectives one;
  const auto c = wide_case();
  test::RankNetwork alone(c, one, 1, 7);
  const auto expected = alone.values();
  run_ranks(4, [&](Collectives& ranks) {
    test::RankNetwork net(c, ranks, 1, 7);
    EXPECT_TRUE(test::same_bits(net.values(), expected)) << "rank " << ranks.rank();
  });
  test::RankNetwork other(c, one, 1, 8);
  EXPECT_FALSE(test::same_bits(other.values(), expected));
}

}  // namespace
}  // namespace simclr
