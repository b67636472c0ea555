#include "kernels/conv2d/winograd_weights.h"

#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/common/simd.h"

namespace simclr::conv2d {
namespace {

constexpr int64_t kBlock = WinogradLayout::kBlock;
constexpr int64_t kSide = 6, kTaps = 9;
using V = Lanes<kBlock>;

// The rows of G are (1, p, p^2) / prod (p - q) over the other points q. oneDNN's are 0, +-a, +-b and infinity.
constexpr double kA = 5.0 / 8, kB = 3.0 / 2;
constexpr double kOfA = 1 / (kA * (2 * kA) * (kA * kA - kB * kB)), kOfB = 1 / (kB * (2 * kB) * (kB * kB - kA * kA));
constexpr float kZero = to_float(1 / (kA * kA * kB * kB));
constexpr float kA0 = to_float(kOfA), kA1 = to_float(kOfA * kA), kA2 = to_float(kOfA * kA * kA);
constexpr float kB0 = to_float(kOfB), kB1 = to_float(kOfB * kB), kB2 = to_float(kOfB * kB * kB);

// u [6] = G g
SIMCLR_INLINE void transform_three(V::Float g0, V::Float g1, V::Float g2, V::Float* u) {
  const V::Float even_a = kA0 * g0 + kA2 * g2, even_b = kB0 * g0 + kB2 * g2;
  u[0] = kZero * g0;
  u[1] = even_a + kA1 * g1;
  u[2] = even_a - kA1 * g1;
  u[3] = even_b + kB1 * g1;
  u[4] = even_b - kB1 * g1;
  u[5] = g2;
}

// windows [16 in][9][16 out] -> 36 planes of [16 in][16 out], `plane` elements apart.
SIMCLR_MULTIVERSION void transform_block(const float* windows, float* planes, int64_t plane) {
  for (int64_t i = 0; i < kBlock; ++i) {
    V::Float rows[kSide][3];  // G g
    for (int64_t column = 0; column < 3; ++column) {
      const float* g = windows + (i * kTaps + column) * kBlock;
      V::Float u[kSide];
      transform_three(V::load(g), V::load(g + 3 * kBlock), V::load(g + 6 * kBlock), u);
      for (int64_t row = 0; row < kSide; ++row) rows[row][column] = u[row];
    }
    for (int64_t row = 0; row < kSide; ++row) {
      V::Float u[kSide];
      transform_three(rows[row][0], rows[row][1], rows[row][2], u);
      for (int64_t column = 0; column < kSide; ++column)
        V::store(planes + (row * kSide + column) * plane + i * kBlock, u[column]);
    }
  }
}

// As a forward convolution sees the weights: `out` rows, `in` columns of windows.
struct Windows {
  const float* first;
  int64_t out, in, out_stride, in_stride;
  bool turned;
};

void gather_block(const Windows& w, int64_t out_block, int64_t in_block, float* windows) {
  const int64_t first_out = out_block * kBlock, first_in = in_block * kBlock;
  const int64_t outs = std::min(kBlock, w.out - first_out), ins = std::min(kBlock, w.in - first_in);
  if (outs < kBlock || ins < kBlock) std::fill_n(windows, kBlock * kTaps * kBlock, 0.0F);
  for (int64_t o = 0; o < outs; ++o)
    for (int64_t i = 0; i < ins; ++i) {
      const float* window = w.first + (first_out + o) * w.out_stride + (first_in + i) * w.in_stride;
      for (int64_t t = 0; t < kTaps; ++t) windows[(i * kTaps + t) * kBlock + o] = window[w.turned ? kTaps - 1 - t : t];
    }
}

}  // namespace

void transform_weights(const CpuExec& exec, const float* weight, int64_t out, int64_t in, Pass pass,
                       const WinogradLayout& layout, float* transformed) {
  const bool forward = pass == Pass::kForward;
  const Windows all =
      forward ? Windows{weight, out, in, in * kTaps, kTaps, false} : Windows{weight, in, out, kTaps, in * kTaps, true};
  const int64_t plane = layout.in * layout.out_group * kBlock * kBlock;
  parallel_for(exec, layout.out * layout.in, [&](int64_t block, int) {
    const int64_t o = block / layout.in, i = block % layout.in;
    const int64_t group = kSide * kSide * plane * (o / layout.out_group);
    const int64_t in_plane =
        ((i / layout.in_group * layout.out_group + o % layout.out_group) * layout.in_group + i % layout.in_group);
    alignas(64) float windows[kBlock * kTaps * kBlock];
    gather_block(all, o, i, windows);
    transform_block(windows, transformed + group + in_plane * kBlock * kBlock, plane);
  });
}

}  // namespace simclr::conv2d
