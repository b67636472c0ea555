// The gradient of the streaming op where single precision is hard: 4,096 rows at the lowest temperature, 1,024 at the
// others, views that are nearly aligned, against double from the same float embeddings.
#include <gtest/gtest.h>

#include "tests/kernels/infonce_streaming/infonce_streaming_support.h"

namespace simclr {
namespace {

constexpr int64_t kMostImages = SIMCLR_MOST_IMAGES;  // of CMake: fewer under sanitizers, where plain loops are slow

// Unit rows whose two views have cosine about `cosine`.
std::vector<float> aligned_rows(int64_t batch, int64_t columns, double cosine) {
  const auto noise = static_cast<float>(std::sqrt(1 / (cosine * cosine) - 1));
  return test::normalized(test::make_views(batch, columns, noise, 11), columns);
}

TEST(StreamingAccuracy, GradientIsWithin5e7OfDouble) {
  constexpr int64_t kColumns = 128;
  for (const double cosine : {0.73, 0.9, 0.98}) {
    for (const double temperature : {0.5, 0.1, 0.05}) {
      const int64_t batch = temperature < 0.1 ? kMostImages : 512;
      const auto e = aligned_rows(batch, kColumns, cosine);
      const InfoNceProblem p = test::problem(batch, 1, kColumns, temperature);
      const test::StreamingOutputs run = test::run_streaming(e, p, kColumns, 2);
      const InfoNceReference expected = infonce_reference_from_embeddings(
          test::to_double(e), {.batch = batch, .columns = kColumns, .temperature = temperature, .margin = 0});
      const double grad_error = test::relative_error(run.grad_e, expected.grad_e);
      const double loss_error = std::abs(run.shard_loss[0] / static_cast<double>(p.keys()) / expected.loss - 1);
      fmt::print("cosine {:<4} tau {:<4} loss {:.3e}: relative error of loss {:.1e}, dL/de {:.1e}\n", cosine,
                 temperature, expected.loss, loss_error, grad_error);
      EXPECT_LE(grad_error, 5e-7);
      EXPECT_LE(loss_error, 1e-7);
    }
  }
}

}  // namespace
}  // namespace simclr
