// How exact single precision is where it is hard: views nearly aligned and a low temperature, so that p of the positive
// is 1 to seven digits and 1 - p would keep none. Also exp_nonpositive and gemm, which the op stands on.
#include <gtest/gtest.h>

#include <bit>

#include "kernels/common/gemm.h"
#include "kernels/common/parallel.h"
#include "kernels/infonce/exp.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce/infonce_ref.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "src/device/context.h"
#include "tests/loss/loss_support.h"

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

TEST(Gemm, MatchesPlainLoopsForAllTransposesAndStrides) {
  const Exec exec = CpuExec{.threads = 1};
  for (const Op op_a : {Op::kNone, Op::kTranspose}) {
    for (const Op op_b : {Op::kNone, Op::kTranspose}) {
      for (const int64_t m : {1, 3, 33}) {
        for (const int64_t n : {1, 5, 64}) {
          for (const int64_t k : {1, 7, 129}) {
            const bool a_plain = op_a == Op::kNone, b_plain = op_b == Op::kNone;
            const auto av = test::random_numbers(m * k, 1), bv = test::random_numbers(k * n, 2),
                       cv = test::random_numbers(m * n, 3);
            TestMatrix a(av, a_plain ? m : k, a_plain ? k : m, (a_plain ? k : m) + 3);
            TestMatrix b(bv, b_plain ? k : n, b_plain ? n : k, (b_plain ? n : k) + 1);
            TestMatrix fresh(m, n, n + 2), sum(cv, m, n, n + 2);
            parallel_for(std::get<CpuExec>(exec), 1, [&](int64_t, int) {
              gemm(a.view(), op_a, b.view(), op_b, {.alpha = 0.5F}, fresh.view());  // over NaN
              gemm(a.view(), op_a, b.view(), op_b, {.alpha = 0.5F, .beta = 2.0F}, sum.view());
            });
            std::vector<double> product(m * n), with_c(m * n);
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                for (int64_t l = 0; l < k; ++l)
                  product[i * n + j] +=
                      0.5 * (a_plain ? av[i * k + l] : av[l * m + i]) * (b_plain ? bv[l * n + j] : bv[j * k + l]);
                with_c[i * n + j] = product[i * n + j] + 2.0 * cv[i * n + j];
              }
            }
            EXPECT_LE(test::relative_error(fresh.dense(), product), 1e-6) << m << " " << n << " " << k;
            EXPECT_LE(test::relative_error(sum.dense(), with_c), 1e-6) << m << " " << n << " " << k;
          }
        }
      }
    }
  }
}

TEST(Gemm, RefusesWrongShapesAndOtherThreadCounts) {
  TestMatrix a(2, 3), b(3, 4), c(2, 4);
  const CpuExec exec{.threads = 1};
  parallel_for(exec, 1, [&](int64_t, int) {
    EXPECT_THROW(gemm(a.view(), Op::kTranspose, b.view(), Op::kNone, {}, c.view()), Error);
    EXPECT_THROW(gemm(a.view(), Op::kNone, b.view(), Op::kNone, {}, a.view()), Error);
  });
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  EXPECT_THROW(gemm(a.view(), Op::kNone, b.view(), Op::kNone, {}, c.view()), Error);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace simclr
