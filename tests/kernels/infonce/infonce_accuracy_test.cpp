// How exact single precision is where it is hard: views nearly aligned and a low temperature, so that p of the positive
// is 1 to seven digits and 1 - p would keep none. Also exp_nonpositive, which the op is built on.
#include <gtest/gtest.h>

#include <bit>

#include "kernels/infonce/infonce.h"
#include "kernels/infonce/infonce_ref.h"
#include "kernels/infonce_common/exp.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "src/device/context.h"
#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::TestMatrix;

struct Errors {
  double mean_positive, loss_value, loss, grad_e, grad_e_worst_row, grad_z;
};

// Everything by the ops on one rank with one shard, against double from the same float z.
Errors measure(int64_t batch, int64_t columns, double temperature, float noise) {
  const std::vector<float> z = test::make_views(batch, columns, noise, 11);
  const InfoNceProblem p{.batch = batch,
                         .shard_images = batch,
                         .shards = 1,
                         .first_shard = 0,
                         .columns = columns,
                         .temperature = temperature,
                         .margin = 0};
  Context context(2);
  context.reserve(infonce_scratch(p));
  Buffer memory(infonce_saved_bytes(p));
  const InfoNceSaved saved = infonce_saved(p, memory.as<std::byte>());
  TestMatrix z_in(z, p.keys(), columns, columns), e(p.keys(), columns), anchors(p.keys(), columns),
      keys(p.keys(), columns), grad_z(p.keys(), columns);
  std::vector<double> norms(p.keys()), shard_loss(1);
  l2_normalize_forward(context.exec(), z_in.view(), e.view(), norms);
  infonce_forward(context.exec(), e.view(), p, saved, shard_loss);
  infonce_backward(context.exec(), e.view(), p, saved, anchors.view(), keys.view());
  for (int64_t k = 0; k < anchors.view().elements(); ++k) anchors.view().data[k] += keys.view().data[k];
  l2_normalize_backward(context.exec(), e.view(), norms, anchors.view(), grad_z.view());

  const InfoNceReferenceSettings settings{.batch = batch, .columns = columns, .temperature = temperature, .margin = 0};
  const std::vector<double> e64 = test::to_double(e.dense());
  const InfoNceReference from_e = infonce_reference_from_embeddings(e64, settings);
  const InfoNceReference from_z = infonce_reference(test::to_double(z), settings);
  Errors out{};
  const std::vector<float> grad_e = anchors.dense();
  for (int64_t i = 0; i < p.keys(); ++i) {
    double error = 0, length = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t k = i * columns + c;
      error += std::pow(grad_e[k] - from_e.grad_e[k], 2);
      length += std::pow(from_e.grad_e[k], 2);
      out.mean_positive += e64[k] * e64[(i + batch) % p.keys() * columns + c] / static_cast<double>(p.keys());
    }
    out.grad_e_worst_row = std::max(out.grad_e_worst_row, std::sqrt(error / length));
  }
  out.loss_value = from_e.loss;
  out.loss = std::abs(shard_loss[0] / static_cast<double>(p.keys()) / from_e.loss - 1);
  out.grad_e = test::relative_error(grad_e, from_e.grad_e);
  out.grad_z = test::relative_error(grad_z.dense(), from_z.grad_z);
  return out;
}

TEST(InfoNceAccuracy, AlignedViewsAtLowTemperature) {
  for (const double temperature : {0.5, 0.1, 0.05}) {
    const Errors e = measure(256, 128, temperature, 0.2F);
    fmt::print(
        "tau {:<5} s_pos {:.3f} loss {:.3e}: relative error of loss {:.1e}, dL/de {:.1e} (worst row {:.1e}), dL/dz "
        "{:.1e}\n",
        temperature, e.mean_positive, e.loss_value, e.loss, e.grad_e, e.grad_e_worst_row, e.grad_z);
    EXPECT_NEAR(e.mean_positive, 0.98, 0.005);
    EXPECT_LE(e.loss, 1e-8);  // roundings of rows average out; a positive similarity in float would not pass
    EXPECT_LE(e.grad_e, 1e-6);
    EXPECT_LE(e.grad_z, 1e-6);
  }
}

// Every 1,009th float between -87 and -1e-8 against exp in double; 1 ulp there is 2^(exponent - 23).
TEST(ExpNonpositive, IsWithinItsErrorAndExactAtTheEnds) {
  double worst = 0;
  for (uint32_t bits = std::bit_cast<uint32_t>(-1e-8F); bits <= std::bit_cast<uint32_t>(kExpUnderflow); bits += 1009) {
    const float x = std::bit_cast<float>(bits);
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_nonpositive(x) - exact) / std::ldexp(1.0, std::ilogb(exact) - 23));
  }
  EXPECT_LE(worst, 1.1);
  EXPECT_EQ(exp_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(exp_nonpositive(std::nextafter(kExpUnderflow, -100.0F)), 0.0F);
  EXPECT_EQ(exp_nonpositive(-INFINITY), 0.0F);
  EXPECT_TRUE(std::isnan(exp_nonpositive(test::kNan)));
}

}  // namespace
}  // namespace simclr
