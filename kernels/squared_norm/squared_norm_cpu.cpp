#include <algorithm>

#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "kernels/squared_norm/squared_norm.h"

namespace simclr::detail {
namespace {

// p[0] += p[1], p[2] += p[3], ...; then in steps of two, four, ... The sum ends in p[0].
[[gnu::always_inline]] inline void tree_sum(double* p, int64_t count) {
  for (int64_t step = 1; step < count; step *= 2) {
    for (int64_t i = 0; i + step < count; i += 2 * step) p[i] += p[i + step];
  }
}

SIMCLR_MULTIVERSION double block_square(const float* x, int64_t count) {
  double lane[kNormLanes] = {};
  int64_t k = 0;
  for (; k + kNormLanes <= count; k += kNormLanes) {
    for (int64_t l = 0; l < kNormLanes; ++l) lane[l] += as_double(x[k + l]) * as_double(x[k + l]);
  }
  for (int64_t l = 0; k + l < count; ++l) lane[l] += as_double(x[k + l]) * as_double(x[k + l]);
  tree_sum(lane, kNormLanes);
  return lane[0];
}

SIMCLR_MULTIVERSION void add_scaled(const float* x, float scale, const float* other, int64_t count, float* sum) {
  for (int64_t k = 0; k < count; ++k) sum[k] = to_float(as_double(x[k]) + as_double(scale) * as_double(other[k]));
}

double square_of_block(const NormRun& r, int64_t begin, int64_t count) {
  if (r.other == nullptr) return block_square(r.values + begin, count);
  float sum[kNormBlock];
  add_scaled(r.values + begin, r.scale, r.other + begin, count, sum);
  return block_square(sum, count);
}

}  // namespace

void squared_norms(const CpuExec& exec, const NormTable& table, double* squares) {
  for (const NormRun& r : table.runs) {
    const int64_t blocks = (r.elements + kNormBlock - 1) / kNormBlock;
    auto* partial = workspace_as<double>(exec, blocks);  // [blocks]
    parallel_for(exec, blocks, [&](int64_t b, int) {
      const int64_t begin = b * kNormBlock;
      partial[b] = square_of_block(r, begin, std::min(kNormBlock, r.elements - begin));
    });
    tree_sum(partial, blocks);
    *squares++ = blocks > 0 ? partial[0] : 0.0;
  }
}

void total_squared_norm(const CpuExec&, const double* squares, int64_t count, double* total) {
  double lane[kNormLanes] = {};
  for (int64_t k = 0; k < count; ++k) lane[k % kNormLanes] += squares[k];
  tree_sum(lane, kNormLanes);
  *total = lane[0];
}

}  // namespace simclr::detail
