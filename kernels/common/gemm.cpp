// Checks shapes and calls dnnl_sgemm, whose C interface is the same in oneDNN 2.6 and 3.x.
#include "kernels/common/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "kernels/common/error.h"

namespace simclr {

void gemm(const ConstMatrix& a, Op op_a, const ConstMatrix& b, Op op_b, GemmScale scale, const Matrix& c) {
  const bool a_plain = op_a == Op::kNone, b_plain = op_b == Op::kNone;
  const int64_t m = a_plain ? a.rows : a.cols, k = a_plain ? a.cols : a.rows;
  const int64_t n = b_plain ? b.cols : b.rows, k_of_b = b_plain ? b.rows : b.cols;
  SIMCLR_CHECK(m >= 1 && n >= 1 && k >= 1 && k == k_of_b && c.rows == m && c.cols == n,
               "product [{}, {}] x [{}, {}] into [{}, {}]", m, k, k_of_b, n, c.rows, c.cols);
  SIMCLR_CHECK(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols,
               "strides {}, {}, {} for {}, {}, {} columns", a.stride, b.stride, c.stride, a.cols, b.cols, c.cols);
  SIMCLR_CHECK(omp_get_max_threads() == 1, "called outside parallel_for: oneDNN would see {} threads",
               omp_get_max_threads());
  const dnnl_status_t status = dnnl_sgemm(a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', m, n, k, scale.alpha, a.data,
                                          a.stride, b.data, b.stride, scale.beta, c.data, c.stride);
  if (status != dnnl_success) {
    fail(ExitCode::kDevice, "oneDNN sgemm of [{}, {}] x [{}, {}] failed with status {}; out of memory?", m, k, k, n,
         static_cast<int>(status));
  }
}

}  // namespace simclr
