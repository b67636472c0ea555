// linear on the CPU: one matrix product per shard. In bfloat16 the weights are rounded first; weight gradients stay
// float32.
#include <algorithm>

#include "kernels/common/bfloat16.h"
#include "kernels/common/gemm.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/linear/linear_device.h"

namespace simclr::linear {
namespace {

constexpr int64_t kSumChunk = 4096;  // elements that one task of the tree sum takes

void clear_padding(const Matrix& m) {
  with_element_type(m.type, [&]<typename T>(T) {
    for (int64_t i = 0; i < m.rows && m.stride > m.cols; ++i) {
      T* row = stored_as<T>(m.row(i));
      std::fill(row + m.cols, row + m.stride, T{});
    }
  });
}

// W [out, in] as a factor of `type`: itself, or rounded into the workspace.
ConstMatrix weights_as(const CpuExec& exec, DataType type, const float* weight, int64_t out, int64_t in) {
  if (type == DataType::kFloat32) return {weight, out, in, in};
  auto* rounded = workspace_as<Bfloat16>(exec, static_cast<size_t>(out * in));
  parallel_for(exec, (out * in + kSumChunk - 1) / kSumChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kSumChunk;
    to_bfloat16(weight + begin, std::min(kSumChunk, out * in - begin), rounded + begin);
  });
  return {reinterpret_cast<const float*>(rounded), out, in, in, type};
}

}  // namespace

void forward(const CpuExec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y) {
  const int64_t n = x.rows / shards;
  const ConstMatrix w = weights_as(exec, x.type, weight, y.cols, x.cols);
  parallel_for(exec, shards, [&](int64_t s, int) {
    const Matrix out = y.slice(s * n, n);  // [n, out]
    if (out.type == DataType::kBfloat16) {
      gemm_bfloat16(x.slice(s * n, n), Op::kNone, w, Op::kTranspose, bias, out);
      clear_padding(out);
      return;
    }
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
  const ConstMatrix w = weights_as(exec, grad_y.type, weight, grad_y.cols, grad_x.cols);
  parallel_for(exec, shards, [&](int64_t s, int) {
    const Matrix out = grad_x.slice(s * n, n);  // [n, in]
    if (out.type == DataType::kBfloat16) {
      gemm_bfloat16(grad_y.slice(s * n, n), Op::kNone, w, Op::kNone, nullptr, out);
    } else {
      gemm(grad_y.slice(s * n, n), Op::kNone, w, Op::kNone, {}, out);
    }
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
    const Matrix weights{part, out, in, in};
    if (g.type == DataType::kBfloat16) {
      gemm_bfloat16(g, Op::kTranspose, x.slice(s * n, n), Op::kNone, nullptr, weights);
    } else {
      gemm(g, Op::kTranspose, x.slice(s * n, n), Op::kNone, {}, weights);
    }
    float* bias = part + out * in;
    std::fill_n(bias, out, 0.0F);
    with_element_type(g.type, [&]<typename T>(T) {
      for (int64_t i = 0; i < n; ++i) {
        const T* row = stored_as<T>(g.row(i));
        for (int64_t o = 0; o < out; ++o) bias[o] += as_float(row[o]);
      }
    });
  });
  parallel_for(exec, (elements + kSumChunk - 1) / kSumChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kSumChunk, end = std::min(elements, begin + kSumChunk);
    ordered_tree_sum<float>([&](int64_t s) { return parts + s * stride; }, shards, begin, end);
  });
  std::copy_n(parts, out * in, grad_weight);
  if (grad_bias) std::copy_n(parts + out * in, out, grad_bias);
}

}  // namespace simclr::linear
