// Register tiles of 6 x 8 doubles; each tile sums over the whole inner dimension in order.
#include "src/evaluate/linear_products.h"

#include <algorithm>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"

namespace simclr {
namespace {

constexpr int64_t kTall = 6, kWide = 8;
constexpr int64_t kRowBlock = 8 * kTall;     // rows of a task of linear_logits
constexpr int64_t kColumnBlock = 2 * kWide;  // columns of a task of linear_gradient: a cache line of float32
constexpr int64_t kRun = 256;                // rows that such a task packs at a time

// tile[t][w] += sum over i of tall[i][t] * wide[i][w]; tall [count, 6], wide [count, 8] of stride wide_stride.
SIMCLR_MULTIVERSION void add_products(const double* tall, const double* wide, int64_t wide_stride, int64_t count,
                                      double* tile) {
  typedef double Lanes8 __attribute__((vector_size(kWide * sizeof(double)), aligned(8), may_alias));
  Lanes8 sums[kTall];
  for (int64_t t = 0; t < kTall; ++t) sums[t] = *reinterpret_cast<const Lanes8*>(tile + t * kWide);
  for (int64_t i = 0; i < count; ++i) {
    const Lanes8 w = *reinterpret_cast<const Lanes8*>(wide + i * wide_stride);
    for (int64_t t = 0; t < kTall; ++t) sums[t] += tall[i * kTall + t] * w;
  }
  for (int64_t t = 0; t < kTall; ++t) *reinterpret_cast<Lanes8*>(tile + t * kWide) = sums[t];
}

// One task of linear_logits: rows [first, first + count). transposed [D, wide] = W^T, with zeros from column K on.
void logits_of_rows(const ConstFloatMatrix& x, int64_t first, int64_t count, std::span<const double> weights,
                    const std::vector<double>& transposed, int64_t wide, double* packed, double* logits) {
  const int64_t features = x.cols, classes = std::ssize(weights) / (features + 1);
  for (int64_t begin = first; begin < first + count; begin += kTall) {
    const int64_t rows = std::min(kTall, first + count - begin);
    for (int64_t d = 0; d < features; ++d)
      for (int64_t t = 0; t < kTall; ++t) packed[d * kTall + t] = t < rows ? as_double(x.row(begin + t)[d]) : 0.0;
    for (int64_t k = 0; k < classes; k += kWide) {
      const int64_t cols = std::min(kWide, classes - k);
      double tile[kTall * kWide] = {};
      for (int64_t t = 0; t < kTall; ++t)
        for (int64_t c = 0; c < cols; ++c) tile[t * kWide + c] = weights[(k + c) * (features + 1) + features];
      add_products(packed, transposed.data() + k, wide, features, tile);
      for (int64_t t = 0; t < rows; ++t) std::copy_n(tile + t * kWide, cols, logits + (begin + t) * classes + k);
    }
  }
}

}  // namespace

void linear_logits(const CpuExec& exec, const ConstFloatMatrix& features, std::span<const double> weights,
                   std::span<double> logits) {
  const int64_t width = features.cols, rows = features.rows;
  const int64_t classes = std::ssize(weights) / (width + 1);
  SIMCLR_CHECK(classes >= 1 && classes * (width + 1) == std::ssize(weights) && std::ssize(logits) == rows * classes,
               "{} weights, {} logits for [{}, {}]", weights.size(), logits.size(), rows, width);
  const int64_t wide = round_up(classes, kWide);
  std::vector<double> transposed(width * wide);
  for (int64_t k = 0; k < classes; ++k)
    for (int64_t d = 0; d < width; ++d) transposed[d * wide + k] = weights[k * (width + 1) + d];
  std::vector<double> packed(exec.threads * width * kTall);
  parallel_for(exec, (rows + kRowBlock - 1) / kRowBlock, [&](int64_t block, int thread) {
    const int64_t first = block * kRowBlock;
    logits_of_rows(features, first, std::min(kRowBlock, rows - first), weights, transposed, wide,
                   packed.data() + thread * width * kTall, logits.data());
  });
}

void linear_gradient(const CpuExec& exec, const ConstFloatMatrix& features, std::span<const double> residuals,
                     int64_t first_column, int64_t columns, std::span<double> gradient) {
  const int64_t rows = features.rows, classes = std::ssize(residuals) / rows;
  SIMCLR_CHECK(classes >= 1 && classes * rows == std::ssize(residuals) && first_column >= 0 &&
                   first_column + columns <= features.cols && std::ssize(gradient) == classes * columns,
               "{} residuals, {} gradients for {} rows and columns {} to {} of {}", residuals.size(), gradient.size(),
               rows, first_column, first_column + columns, features.cols);
  const int64_t tall_tiles = (classes + kTall - 1) / kTall, tall = tall_tiles * kTall;
  // residuals in tiles of six classes, [tiles, N, 6], read by every task
  std::vector<double> packed_residuals(tall * rows);
  parallel_for(exec, tall_tiles, [&](int64_t tile, int) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t t = 0; t < kTall && tile * kTall + t < classes; ++t)
        packed_residuals[(tile * rows + i) * kTall + t] = residuals[i * classes + tile * kTall + t];
  });
  parallel_for(exec, (columns + kColumnBlock - 1) / kColumnBlock, [&](int64_t block, int) {
    const int64_t first = block * kColumnBlock, cols = std::min(kColumnBlock, columns - first);
    double packed[kRun * kColumnBlock] = {};
    std::vector<double> tiles(2 * tall * kWide);  // [2, tall, 8]
    for (int64_t begin = 0; begin < rows; begin += kRun) {
      const int64_t run = std::min(kRun, rows - begin);
      for (int64_t i = 0; i < run; ++i)
        std::copy_n(features.row(begin + i) + first_column + first, cols, packed + i * kColumnBlock);
      for (int64_t tile = 0; tile < tall_tiles; ++tile)
        for (int64_t half = 0; half * kWide < cols; ++half)
          add_products(packed_residuals.data() + (tile * rows + begin) * kTall, packed + half * kWide, kColumnBlock,
                       run, tiles.data() + (half * tall + tile * kTall) * kWide);
    }
    for (int64_t k = 0; k < classes; ++k)
      for (int64_t c = 0; c < cols; ++c)
        gradient[k * columns + first + c] = tiles[(c / kWide * tall + k) * kWide + c % kWide];
  });
}

}  // namespace simclr
