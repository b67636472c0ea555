// The whole network against plain loops in double (reference_network.h): z, the running statistics, the evaluation
// mode, and every parameter's gradient.
//
// Gradients: <dL/dw, d> for L = sum(r * z) along directions d of random signs, one parameter at a time, against the
// exact slope of the double forward (dual numbers). An error e of a gradient shows as <e, d>, which is of size ||e||
// and falls below a tenth of that for one direction in twelve; so there are two. Central differences would have to be
// distinguished from the kinks of ReLU and max pooling: one unit that changes sides within the step is worth
// ||g|| / sqrt(units), about 1 % here. They check the dual numbers instead, once, with all weights moving.
#include <gtest/gtest.h>

#include "src/comm/single_process_collectives.h"
#include "tests/nn/network_support.h"

namespace simclr::test {
namespace {

// Of ||g||. Float32 through ten to fifty layers comes to 8e-5 at most, through eighteen to 1.4e-5. A unit whose sign
// differs between float and double would be seen as 1 %, but with 1e4 units the chance of one so near zero is 1e-3.
constexpr double kGradientTolerance = 1e-4;

std::vector<NetworkCase> cases() {
  const BatchNormSettings separate{.views = BatchNormViews::kSeparate};
  std::vector<NetworkCase> all;
  all.push_back({.name = "CifarJoint"});
  all.push_back({.name = "CifarSeparateNoProjectorNorm",
                 .projector = {.layers = 3, .hidden = 12, .output = 6, .batch_norm = false},
                 .batch_norm = separate,
                 .images_per_shard = 4});
  all.push_back({.name = "ImagenetOneLayer",
                 .encoder = {.depth = 10, .width = 8, .stem = Stem::kImagenet},
                 .projector = {.layers = 1, .hidden = 12, .output = 6},
                 .image_size = 16});
  all.push_back({.name = "ImagenetSeparateThreeLayers",
                 .encoder = {.depth = 10, .width = 8, .stem = Stem::kImagenet},
                 .projector = {.layers = 3, .hidden = 12, .output = 6},
                 .batch_norm = separate,
                 .image_size = 12,
                 .images_per_shard = 4});
  // No size is a multiple of anything: maps of 7, 4, 2 and 1, channels of 10, 20, 40, 80.
  all.push_back({.name = "OddSizes",
                 .encoder = {.depth = 10, .width = 10},
                 .projector = {.layers = 2, .hidden = 19, .output = 5},
                 .image_size = 7,
                 .images_per_shard = 3});
  // Two blocks a stage: identity shortcuts at every width.
  all.push_back({.name = "Depth18", .encoder = {.depth = 18, .width = 8}, .image_size = 6});
  all.push_back({.name = "Depth34", .encoder = {.depth = 34, .width = 3}, .image_size = 6});
  // Bottlenecks; odd maps and channels that fill no block of 8 or 16.
  all.push_back({.name = "Depth50", .encoder = {.depth = 50, .width = 3}, .image_size = 5, .images_per_shard = 8});
  return all;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}
std::vector<double> random_signs(int64_t count, uint32_t seed) {
  std::vector<double> signs;
  for (const float v : test::random_values(count, seed)) signs.push_back(v < 0 ? -1 : 1);
  return signs;
}

class ModelAgainstDouble : public testing::TestWithParam<NetworkCase> {
 protected:
  ModelAgainstDouble() : net_(GetParam(), one_, 2) { net_.randomize_vectors(); }

  std::vector<double> images() const { return test::widen(all_images(GetParam(), kSeed)); }
  std::vector<double> grad_z() const { return test::widen(all_grad_z(GetParam(), kSeed)); }

  // Of z and the statistics: 53 layers with batch norms over few values come to 1.1e-5 and 7.9e-6.
  static double rounding(double of_eighteen_layers) {
    return GetParam().encoder.depth == 50 ? 10 * of_eighteen_layers : of_eighteen_layers;
  }

  static constexpr uint32_t kSeed = 11;
  SingleProcessCollectives one_;
  RankNetwork net_;
  ReferenceNetwork reference_{GetParam().settings(), GetParam().image_size, GetParam().samples()};
};

TEST_P(ModelAgainstDouble, Forward) {
  const auto z = dense(net_.model().forward(net_.images(kSeed)));
  EXPECT_LT(test::relative_error(z, reference_.project(net_.tensors(), images())), rounding(1e-5));
}

TEST_P(ModelAgainstDouble, Gradients) {
  net_.forward_backward(kSeed);
  const Tensors weights = net_.tensors();
  const auto x = images(), r = grad_z();
  const auto& parameters = net_.store().parameters();
  constexpr size_t kEach = 2, kAtOnce = kDirections / kEach;  // directions of a parameter, parameters of a pass
  for (size_t first = 0; first < parameters.size(); first += kAtOnce) {
    std::array<Direction, kDirections> directions;
    for (size_t k = 0; k < kDirections && first + k / kEach < parameters.size(); ++k) {
      const Parameter& p = parameters[first + k / kEach];
      directions[k] = {p.name, random_signs(p.elements, static_cast<uint32_t>(kEach * first + k))};
    }
    const auto slopes = reference_.project_slopes(weights, x, directions);
    for (size_t k = 0; k < kDirections && first + k / kEach < parameters.size(); ++k) {
      const Parameter& p = parameters[first + k / kEach];
      const std::vector<double> g(p.grad, p.grad + p.elements);
      const double norm = std::sqrt(dot(g, g));
      EXPECT_GT(norm, 0.01) << p.name << ": too small a gradient to check";
      EXPECT_NEAR(dot(g, directions[k].d), dot(r, slopes[k]), kGradientTolerance * norm) << p.name << ", |g| " << norm;
    }
  }
}

TEST_P(ModelAgainstDouble, RunningStatisticsTakeInTheBatch) {
  const Tensors before = net_.tensors();
  StatisticsByName seen;
  reference_.project(before, images(), &seen);

  net_.model().forward(net_.images(kSeed));
  const int skip = 0;
  net_.model().update_running_statistics(&skip);
  const double momentum = GetParam().batch_norm.momentum;
  ASSERT_EQ(net_.store().buffers().size(), 2 * seen.size());
  for (const auto& b : net_.store().buffers()) {
    auto want = before.at(b.name);
    const size_t dot = b.name.rfind('.');
    for (const auto& group : seen.at(b.name.substr(0, dot))) {  // view 1 first
      const auto& batch = b.name.substr(dot) == ".running_mean" ? group.mean : group.var;
      for (size_t c = 0; c < want.size(); ++c) want[c] += momentum * (batch[c] - want[c]);
    }
    EXPECT_LT(test::relative_error({b.value, static_cast<size_t>(b.elements)}, want), rounding(1e-6)) << b.name;
  }
}

TEST_P(ModelAgainstDouble, EncodeUsesRunningStatistics) {
  const ConstMatrix h = net_.model().encode(net_.images(kSeed));
  EXPECT_EQ(h.cols, net_.model().representation_size());
  EXPECT_LT(test::relative_error(dense(h), reference_.encode(net_.tensors(), images())), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Networks, ModelAgainstDouble, testing::ValuesIn(cases()),
                         [](const auto& it) { return it.param.name; });

// The reference's own slopes. Step 1e-8: of 1e4 units none lies that near a kink, and rounding is 1e-14 / 1e-8.
TEST(ReferenceNetwork, SlopesAreTheLimitOfDifferences) {
  const NetworkCase c{.name = "Tiny",
                      .encoder = {.depth = 10, .width = 2, .stem = Stem::kImagenet},
                      .batch_norm = {.views = BatchNormViews::kSeparate}};
  SingleProcessCollectives one;
  RankNetwork net(c, one);
  net.randomize_vectors();
  const ReferenceNetwork reference(c.settings(), c.image_size, c.samples());
  const auto x = test::widen(all_images(c, 1));
  const Tensors weights = net.tensors();
  Tensors plus = weights, minus = weights;
  std::vector<double> slope(c.rows() * c.projector.output, 0.0);
  for (const auto& p : net.store().parameters()) {  // one pass a parameter, to add up
    const auto d = random_signs(p.elements, 5);
    for (size_t k = 0; k < d.size(); ++k) {
      plus[p.name][k] += 1e-8 * d[k];
      minus[p.name][k] -= 1e-8 * d[k];
    }
    const auto slopes = reference.project_slopes(weights, x, {Direction{p.name, d}});
    for (size_t k = 0; k < slope.size(); ++k) slope[k] += slopes[0][k];
  }
  const auto high = reference.project(plus, x), low = reference.project(minus, x);
  double error = 0, scale = 0;
  for (size_t k = 0; k < slope.size(); ++k) {
    error = std::max(error, std::fabs((high[k] - low[k]) / 2e-8 - slope[k]));
    scale = std::max(scale, std::fabs(slope[k]));
  }
  EXPECT_GT(scale, 1.0);
  EXPECT_LT(error, 1e-5 * scale);
}

}  // namespace
}  // namespace simclr::test
