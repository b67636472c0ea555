// Checks shapes and calls dnnl_sgemm, whose C interface is the same in oneDNN 2.6 and 3.x, or makes a matmul primitive
// (the library keeps those it has made before).
#include "kernels/common/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <unordered_map>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "kernels/common/onednn.h"
#include "onednn_create.h"

namespace simclr {
namespace {

struct Sizes {
  int64_t m, n, k;
};
Sizes check(const ConstMatrix& a, Op op_a, const ConstMatrix& b, Op op_b, const Matrix& c) {
  const bool a_plain = op_a == Op::kNone, b_plain = op_b == Op::kNone;
  const int64_t m = a_plain ? a.rows : a.cols, k = a_plain ? a.cols : a.rows;
  const int64_t n = b_plain ? b.cols : b.rows, k_of_b = b_plain ? b.rows : b.cols;
  SIMCLR_CHECK(m >= 1 && n >= 1 && k >= 1 && k == k_of_b && c.rows == m && c.cols == n,
               "product [{}, {}] x [{}, {}] into [{}, {}]", m, k, k_of_b, n, c.rows, c.cols);
  SIMCLR_CHECK(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols,
               "strides {}, {}, {} for {}, {}, {} columns", a.stride, b.stride, c.stride, a.cols, b.cols, c.cols);
  SIMCLR_CHECK(omp_get_max_threads() == 1, "called outside parallel_for: oneDNN would see {} threads",
               omp_get_max_threads());
  return {m, n, k};
}

// op(m) [rows, cols]
dnnl::memory::desc operand_desc(const ConstMatrix& m, Op op) {
  using Type = dnnl::memory::data_type;
  const Type type = m.type() == DataType::kBfloat16 ? Type::bf16 : Type::f32;
  if (op == Op::kNone) return {{m.rows, m.cols}, type, dnnl::memory::dims{m.stride, 1}};
  return {{m.cols, m.rows}, type, dnnl::memory::dims{1, m.stride}};
}

}  // namespace

void gemm(const ConstFloatMatrix& a, Op op_a, const ConstFloatMatrix& b, Op op_b, GemmScale scale,
          const FloatMatrix& c) {
  const auto [m, n, k] = check(a, op_a, b, op_b, c);
  const bool a_plain = op_a == Op::kNone, b_plain = op_b == Op::kNone;
  const dnnl_status_t status = dnnl_sgemm(a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', m, n, k, scale.alpha, a.data,
                                          a.stride, b.data, b.stride, scale.beta, c.data, c.stride);
  if (status != dnnl_success) {
    fail(ExitCode::kDevice, "oneDNN sgemm of [{}, {}] x [{}, {}] failed with status {}; out of memory?", m, k, k, n,
         to_int(status));
  }
}

void gemm_bfloat16(const Bfloat16Matrix& a, Op op_a, const Bfloat16Matrix& b, Op op_b, const float* bias,
                   const Matrix& c) {
  const auto [m, n, k] = check(a, op_a, b, op_b, c);
  onednn::guarded("product of bfloat16", [&, n = n] {
    using dnnl::memory;
    const auto& engine = onednn::cpu_engine();
    const memory::desc a_desc = operand_desc(a, op_a), b_desc = operand_desc(b, op_b),
                       c_desc = operand_desc(c, Op::kNone);
    const memory::desc bias_desc =
        bias ? memory::desc({1, n}, memory::data_type::f32, memory::dims{n, 1}) : memory::desc();
    const dnnl::matmul product(onednn::describe_matmul(engine, a_desc, b_desc, bias_desc, c_desc));
    const auto at = [&](const memory::desc& desc, const void* data) {  // the library takes inputs as void*
      return memory(desc, engine, const_cast<void*>(data));
    };
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, at(a_desc, a.data)},
                                            {DNNL_ARG_WEIGHTS, at(b_desc, b.data)},
                                            {DNNL_ARG_DST, at(c_desc, c.data.address())}};
    if (bias) args.emplace(DNNL_ARG_BIAS, at(bias_desc, bias));
    product.execute(onednn::thread_stream(), args);
    onednn::thread_stream().wait();
  });
}

}  // namespace simclr
