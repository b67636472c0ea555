// The loops over one channel block, compiled per instruction set: a template for each, and its instances for float
// (blocks of 8 or 16 channels) and bfloat16 (on processors whose blocks have 16 channels).
#include "kernels/batch_norm/batch_norm_blocks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/simd.h"

namespace simclr::batch_norm {
namespace {

// Sum of f(row, accumulators) over a map with four independent accumulators, combined as (0+1)+(2+3).
template <int L, typename F>
SIMCLR_INLINE void sum_map(int64_t rows, F&& f, double* first, double* second) {
  using V = Lanes<L>;
  typename V::Float a0{}, a1{}, a2{}, a3{}, b0{}, b1{}, b2{}, b3{};
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    f(r * L, a0, b0);
    f((r + 1) * L, a1, b1);
    f((r + 2) * L, a2, b2);
    f((r + 3) * L, a3, b3);
  }
  for (; r < rows; ++r) f(r * L, a0, b0);
  float a[L], b[L];
  V::store(a, (a0 + a1) + (a2 + a3));
  V::store(b, (b0 + b1) + (b2 + b3));
  for (int l = 0; l < L; ++l) first[l] += a[l], second[l] += b[l];
}

template <int L, typename T>
SIMCLR_INLINE void sum_lanes(const T* x, BlockMaps maps, double* sum, double* square) {
  using V = Lanes<L>;
  const auto shift = V::load(x);
  double s[L] = {}, q[L] = {};
  for (int64_t i = 0; i < maps.samples; ++i) {
    const T* p = x + i * maps.stride;
    sum_map<L>(
        maps.rows,
        [&](int64_t k, auto& a, auto& b) __attribute__((always_inline)) {
          const auto d = V::load(p + k) - shift;
          a += d;
          b += d * d;
        },
        s, q);
  }
  const double count = as_double(maps.samples * maps.rows);
  for (int l = 0; l < L; ++l) {
    const double k = as_float(x[l]);
    sum[l] = s[l] + count * k;
    square[l] = q[l] + 2 * k * s[l] + count * k * k;
  }
}

template <int L>
SIMCLR_INLINE auto affine(typename Lanes<L>::Float centered, typename Lanes<L>::Float scale,
                          typename Lanes<L>::Float beta) {
  return centered * scale + beta;
}

template <int L, typename T>
SIMCLR_INLINE void sum_gradient_lanes(const BlockGradients<T>& in, BlockAffine of, BlockMaps maps, T* masked,
                                      double* sum, double* product) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), scale = V::load(of.scale), beta = V::load(of.beta);
  const bool from_x = in.relu && !in.relu_y;
  double s[L] = {}, q[L] = {};
  for (int64_t i = 0; i < maps.samples; ++i) {
    const int64_t at = i * maps.stride;
    sum_map<L>(
        maps.rows,
        [&](int64_t k, auto& a, auto& b) __attribute__((always_inline)) {
          auto g = V::load(in.grad_y + at + k);
          const auto centered = V::load(in.x + at + k) - m;
          if (in.relu_y) g = V::where_positive(V::load(in.relu_y + at + k), g);
          if (from_x) g = V::where_positive(affine<L>(centered, scale, beta), g);
          if (masked) V::store(masked + at + k, g);
          a += g;
          b += g * centered;
        },
        s, q);
  }
  for (int l = 0; l < L; ++l) sum[l] = s[l], product[l] = q[l];
}

template <int L, typename T>
SIMCLR_INLINE void apply_lanes(const T* x, const T* residual, BlockAffine of, bool relu, int64_t rows, T* y) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), a = V::load(of.scale), b = V::load(of.beta);
  for (int64_t k = 0; k < rows * L; k += L) {
    auto v = affine<L>(V::load(x + k) - m, a, b);
    if (residual) v += V::load(residual + k);
    if (relu) v = V::relu(v);
    V::store(y + k, v);
  }
}

template <int L, typename T>
SIMCLR_INLINE void backward_lanes(const BlockGradients<T>& in, BlockAffine of, BlockLine line, int64_t rows,
                                  T* grad_x) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), scale = V::load(of.scale), beta = V::load(of.beta);
  const auto a = V::load(line.slope), k1 = V::load(line.c1), k0 = V::load(line.c0);
  const bool from_x = in.relu && !in.relu_y;
  for (int64_t k = 0; k < rows * L; k += L) {
    auto g = V::load(in.grad_y + k);
    const auto centered = V::load(in.x + k) - m;
    if (in.relu_y) g = V::where_positive(V::load(in.relu_y + k), g);
    if (from_x) g = V::where_positive(affine<L>(centered, scale, beta), g);
    V::store(grad_x + k, a * g + (centered * k1 + k0));
  }
}

}  // namespace

SIMCLR_MULTIVERSION void sum_block(int64_t block, const float* x, BlockMaps maps, double* sum, double* square) {
  block == 16 ? sum_lanes<16>(x, maps, sum, square) : sum_lanes<8>(x, maps, sum, square);
}
SIMCLR_MULTIVERSION void sum_block(int64_t, const Bfloat16* x, BlockMaps maps, double* sum, double* square) {
  sum_lanes<16>(x, maps, sum, square);
}

SIMCLR_MULTIVERSION void sum_gradient_block(int64_t block, BlockGradients<float> in, BlockAffine of, BlockMaps maps,
                                            float* masked, double* sum, double* product) {
  block == 16 ? sum_gradient_lanes<16>(in, of, maps, masked, sum, product)
              : sum_gradient_lanes<8>(in, of, maps, masked, sum, product);
}
SIMCLR_MULTIVERSION void sum_gradient_block(int64_t, BlockGradients<Bfloat16> in, BlockAffine of, BlockMaps maps,
                                            Bfloat16* masked, double* sum, double* product) {
  sum_gradient_lanes<16>(in, of, maps, masked, sum, product);
}

SIMCLR_MULTIVERSION void apply_map(int64_t block, const float* x, const float* residual, BlockAffine of, bool relu,
                                   int64_t rows, float* y) {
  block == 16 ? apply_lanes<16>(x, residual, of, relu, rows, y) : apply_lanes<8>(x, residual, of, relu, rows, y);
}
SIMCLR_MULTIVERSION void apply_map(int64_t, const Bfloat16* x, const Bfloat16* residual, BlockAffine of, bool relu,
                                   int64_t rows, Bfloat16* y) {
  apply_lanes<16>(x, residual, of, relu, rows, y);
}

SIMCLR_MULTIVERSION void backward_map(int64_t block, BlockGradients<float> in, BlockAffine of, BlockLine line,
                                      int64_t rows, float* grad_x) {
  block == 16 ? backward_lanes<16>(in, of, line, rows, grad_x) : backward_lanes<8>(in, of, line, rows, grad_x);
}
SIMCLR_MULTIVERSION void backward_map(int64_t, BlockGradients<Bfloat16> in, BlockAffine of, BlockLine line,
                                      int64_t rows, Bfloat16* grad_x) {
  backward_lanes<16>(in, of, line, rows, grad_x);
}

}  // namespace simclr::batch_norm
