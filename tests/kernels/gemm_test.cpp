// kernels/common/gemm.h against plain loops in double.
#include "kernels/common/gemm.h"

#include <gtest/gtest.h>

#include "kernels/common/parallel.h"
#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::TestMatrix;

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
