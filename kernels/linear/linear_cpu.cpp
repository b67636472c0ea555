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
  with_element_type(m.type(), [&]<typename T>(T) {
    for (int64_t i = 0; i < m.rows && m.stride > m.cols; ++i) {
      T* row = m.row(i).as<T>();
      std::fill(row + m.cols, row + m.stride, T{});
    }
  });
}

// W [out, in], rounded into the workspace.
Bfloat16Matrix rounded_weights(const CpuExec& exec, const float* weight, int64_t out, int64_t in) {
  auto* rounded = workspace_as<Bfloat16>(exec, out * in);
  parallel_for(exec, (out * in + kSumChunk - 1) / kSumChunk, [&](int64_t chunk, int) {
    const int64_t begin = chunk * kSumChunk;
    to_bfloat16(weight + begin, std::min(kSumChunk, out * in - begin), rounded + begin);
  });
  return {rounded, out, in, in};
}

// f(rows of shard s of `from`, of `to`) for every shard; T is what both are stored as. Then columns of `to` beyond
// its width are zero.
template <typename T, typename F>
void product_each(const CpuExec& exec, int64_t shards, const ConstMatrix& from, const Matrix& to, F&& f) {
  const int64_t n = to.rows / shards;
  parallel_for(exec, shards, [&](int64_t s, int) {
    const Matrix out = to.slice(s * n, n);
    f(from.slice(s * n, n).as<T>(), out.as<T>());
    clear_padding(out);
  });
}

}  // namespace

void forward(const CpuExec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y) {
  if (y.type() == DataType::kBfloat16) {
    const Bfloat16Matrix w = rounded_weights(exec, weight, y.cols, x.cols);
    product_each<Bfloat16>(exec, shards, x, y, [&](const auto& in, const auto& out) {  // [n, in], [n, out]
      gemm_bfloat16(in, Op::kNone, w, Op::kTranspose, bias, out);
    });
    return;
  }
  const ConstFloatMatrix w{weight, y.cols, x.cols, x.cols};
  product_each<float>(exec, shards, x, y, [&](const auto& in, const auto& out) {
    gemm(in, Op::kNone, w, Op::kTranspose, {}, out);
    for (int64_t i = 0; bias && i < out.rows; ++i)
      for (int64_t o = 0; o < out.cols; ++o) out.row(i)[o] += bias[o];
  });
}

void backward_data(const CpuExec& exec, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x) {
  if (grad_x.type() == DataType::kBfloat16) {
    const Bfloat16Matrix w = rounded_weights(exec, weight, grad_y.cols, grad_x.cols);
    product_each<Bfloat16>(exec, shards, grad_y, grad_x, [&](const auto& g, const auto& out) {  // [n, out], [n, in]
      gemm_bfloat16(g, Op::kNone, w, Op::kNone, nullptr, out);
    });
    return;
  }
  const ConstFloatMatrix w{weight, grad_y.cols, grad_x.cols, grad_x.cols};
  product_each<float>(exec, shards, grad_y, grad_x,
                      [&](const auto& g, const auto& out) { gemm(g, Op::kNone, w, Op::kNone, {}, out); });
}

void backward_weights(const CpuExec& exec, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                      float* grad_bias) {
  const int64_t n = x.rows / shards, in = x.cols, out = grad_y.cols, elements = out * in + out;
  const int64_t stride = linear_part_stride(in, out);         // the same alignment for every shard
  float* parts = workspace_as<float>(exec, shards * stride);  // [shards, out*in + out]
  parallel_for(exec, shards, [&](int64_t s, int) {
    float* part = parts + s * stride;
    const ConstMatrix g = grad_y.slice(s * n, n);  // [n, out]
    const FloatMatrix weights{part, out, in, in};
    if (g.type() == DataType::kBfloat16) {
      gemm_bfloat16(g.as<Bfloat16>(), Op::kTranspose, x.slice(s * n, n).as<Bfloat16>(), Op::kNone, nullptr, weights);
    } else {
      gemm(g.as<float>(), Op::kTranspose, x.slice(s * n, n).as<float>(), Op::kNone, {}, weights);
    }
    float* bias = part + out * in;
    std::fill_n(bias, out, 0.0F);
    with_element_type(g.type(), [&]<typename T>(T) {
      const auto rows = g.as<T>();
      for (int64_t i = 0; i < n; ++i) {
        const T* row = rows.row(i);
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
