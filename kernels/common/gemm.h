// Row-major matrix products over oneDNN, in single precision or of bfloat16. Not an op: what ops build on (linear,
// infonce).
#pragma once

#include "kernels/common/bfloat16.h"
#include "kernels/common/views.h"

namespace simclr {

enum class Op { kNone, kTranspose };

struct GemmScale {
  float alpha = 1.0F;
  float beta = 0.0F;  // 0: c is not read, it may hold anything
};

// c = alpha * op(a) * op(b) + beta * c          op(a) [m, k], op(b) [k, n], c [m, n]
// The views give sizes and leading dimensions (64 bit); op(a).cols == op(b).rows, all sizes >= 1. c overlaps neither a
// nor b. Runs in the calling thread and is done on return. Call it inside parallel_for (a library sees one thread
// there, which is checked): the bits of c are then a function of sizes, strides, ops and values, and neither of the
// thread count nor of what other threads do. They are NOT promised to be the same when m, n or k is cut differently.
// oneDNN takes packing memory of its own during the call. A failure throws Error(kDevice).
void gemm(const ConstFloatMatrix& a, Op op_a, const ConstFloatMatrix& b, Op op_b, GemmScale scale,
          const FloatMatrix& c);

using Bfloat16Matrix = MatrixView<const Bfloat16*>;

// c = op(a) * op(b) [+ bias in every row]          c bfloat16 or float32, bias [n] float32 or none
// Products are exact and sums single precision; a bfloat16 c is rounded once, after the bias. The rest as for gemm().
void gemm_bfloat16(const Bfloat16Matrix& a, Op op_a, const Bfloat16Matrix& b, Op op_b, const float* bias,
                   const Matrix& c);

}  // namespace simclr
