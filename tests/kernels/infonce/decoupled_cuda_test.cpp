// loss.decoupled on CUDA, in both algorithms: the plain loops in double, and finite differences.
#include "tests/kernels/infonce/infonce_cuda_support.h"

namespace simclr {
namespace {

using test::problem;

TEST(DecoupledCuda, MatchesTheReference) {
  for (const bool streaming : {false, true}) {
    for (const double temperature : {0.01, 0.1, 0.5, 10.0}) {
      for (const float noise : {0.2F, 1.0F}) {
        const std::vector<float> z = test::make_views(40, 24, noise, 4);
        InfoNceProblem p = problem(40, 1, 24, temperature);
        p.decoupled = true;
        const test::CudaMeasured got = test::measure_on_cuda(z, p, streaming);
        const InfoNceReference expected =
            infonce_reference(test::to_double(z),
                              {.batch = 40, .columns = 24, .temperature = temperature, .margin = 0, .decoupled = true});
        EXPECT_NEAR(got.loss, expected.loss, 1e-6 * (1 + std::abs(expected.loss)));
        EXPECT_LE(test::relative_error(got.grad_z, expected.grad_z), 5e-7 + 1e-7 / temperature) << temperature;
      }
    }
  }
}

// Along one direction, by a step whose roundings (1e-7 / 2e-2 of the loss) and third derivatives are of one size.
TEST(DecoupledCuda, GradientIsTheSlopeOfTheLoss) {
  constexpr int64_t kBatch = 9, kColumns = 8;
  constexpr float kStep = 1e-2F;
  InfoNceProblem p = problem(kBatch, 1, kColumns, 0.5);
  p.decoupled = true;
  const std::vector<float> z = test::make_views(kBatch, kColumns, 0.5F, 3),
                           direction = test::random_numbers(2 * kBatch * kColumns, 9);
  for (const bool streaming : {false, true}) {
    const auto loss_at = [&](float step) {
      std::vector<float> moved = z;
      for (size_t k = 0; k < z.size(); ++k) moved[k] += step * direction[k];
      return test::measure_on_cuda(moved, p, streaming).loss;
    };
    const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * static_cast<double>(kStep));
    const auto grad = test::to_double(test::measure_on_cuda(z, p, streaming).grad_z);
    const double expected = test::dot(grad, test::to_double(direction));
    EXPECT_GT(std::abs(expected), 0.05);
    EXPECT_NEAR(slope, expected, 1e-3 * std::abs(expected));
  }
}

}  // namespace
}  // namespace simclr
