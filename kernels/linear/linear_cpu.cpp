// linear on the CPU: one matrix product per shard.
#include <algorithm>

#include "kernels/common/gemm.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/linear/linear_device.h"

namespace simclr::linear {
namespace {

constexpr int64_t kSumChunk = 4096;  // elements that one task of the tree sum takes

void clear_padding(const Matrix& m) {
  for (int64_t i = 0; i < m.rows && m.stride > m.cols; ++i) std::fill(m.row(i) + m.cols, m.row(i) + m.stride, 0.0F);
}

}  // namespace

void forward(const CpuExec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y) {
  const int64_t n = x.rows / shards;
  const ConstMatrix w{weight, y.cols, x.cols, x.cols};
  parallel_for(exec, shards, [&](int64_t s, int) {
    const Matrix out = y.slice(s * n, n);  // [n, out]
    gemm(x.slice(s * n, n), Op::kNone, w, Op::kTranspose, {}, out);
    if (bias) {
      for (int64_t i = 0; i < n; ++i)
        for (int64_t o = 0; o < out.cols; ++o) out.row(i)[o] += bias[o];
    }
    clear_padding(out);
  });
}

void backward_data(const CpuExec& exec, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x) {
  const int64_t n = grad_x.rows / shards;
  const ConstMatrix w{weight, grad_y.cols, grad_x.cols, grad_x.cols};
  parallel_for(exec, shards, [&](int64_t s, int) {
    const Matrix out = grad_x.slice(s * n, n);  // [n, in]
    gemm(grad_y.slice(s * n, n), Op::kNone, w, Op::kNone, {}, out);
    clear_padding(out);
  });
}

void backward_weights(const CpuExec& exec, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                      float* grad_bias) {
  const int64_t n = x.rows / shards, in = x.cols, out = grad_y.cols, elements = out * in + out;
  const int64_t stride = linear_part_stride(in, out);                              // the same alignment for every shard
  float* parts = workspace_as<float>(exec, static_cast<size_t>(shards * stride));  // [shards, out*in + out]
  parallel_for(exec, shards, [&](int64_t s, int) {
    float* part = parts + s * stride;
    const ConstMatrix g = grad_y.slice(s * n, n);  // [n, out]
    gemm(g, Op::kTranspose, x.slice(s * n, n), Op::kNone, {}, Matrix{part, out, in, in});
    float* bias = part + out * in;
    std::fill_n(bias, out, 0.0F);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t o = 0; o < out; ++o) bias[o] += g.row(i)[o];
  });
  parallel_for(exec, (elements + kSumChunk - 1) / kSumChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kSumChunk, end = std::min(elements, begin + kSumChunk);
    ordered_tree_sum<float>([&](int64_t s) { return parts + s * stride; }, shards, begin, end);
  });
  std::copy_n(parts, out * in, grad_weight);
  if (grad_bias) std::copy_n(parts + out * in, out, grad_bias);
}

}  // namespace simclr::linear
