// CPU: products by oneDNN, one call per block; exponentials by vectorized own code. Tasks are (shard, view, block of
// rows), or blocks of keys, so that no sum is cut by the number of threads or of shards on this rank.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/common/gemm.h"
#include "kernels/common/numbers.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/infonce/blocks.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce_common/exp.h"

namespace simclr::detail {
namespace {

// 16 independent lanes that the compiler maps to the registers that there are (GCC and Clang vector types). Written out
// because it otherwise keeps one scalar a lane.
constexpr int64_t kLanes = 16;
using FloatLanes [[gnu::vector_size(64)]] = float;
using HalfFloatLanes [[gnu::vector_size(32)]] = float;
using HalfDoubleLanes [[gnu::vector_size(64)]] = double;

SIMCLR_MULTIVERSION float row_max(const float* row, int64_t count) {
  FloatLanes top = FloatLanes{} - INFINITY;
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    FloatLanes value;
    std::memcpy(&value, row + j, sizeof value);
    top = value > top ? value : top;
  }
  float result = -INFINITY;
  for (; j < count; ++j) result = std::max(result, row[j]);
  for (int64_t l = 0; l < kLanes; ++l) result = std::max(result, top[l]);
  return result;
}

// row_j = exp((row_j - shift) * scale), shift the maximum. Returns the sum in double: element j is added to lane j mod
// 16, the lanes in tree order.
SIMCLR_MULTIVERSION double exponentiate_row(float* row, int64_t count, float shift, float scale) {
  HalfDoubleLanes low = {}, high = {};  // lanes 0..7 and 8..15
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) row[j + l] = exp_nonpositive((row[j + l] - shift) * scale);
    HalfFloatLanes value[2];
    std::memcpy(value, row + j, sizeof value);
    low += __builtin_convertvector(value[0], HalfDoubleLanes);
    high += __builtin_convertvector(value[1], HalfDoubleLanes);
  }
  double lane[kLanes];
  std::memcpy(lane, &low, sizeof low);
  std::memcpy(lane + kLanes / 2, &high, sizeof high);
  for (int64_t l = 0; j + l < count; ++l) {
    row[j + l] = exp_nonpositive((row[j + l] - shift) * scale);
    lane[l] += as_double(row[j + l]);
  }
  ordered_tree_sum<double>([&](int64_t l) { return lane + l; }, kLanes, 0, 1);
  return lane[0];
}

double dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += as_double(a[c]) * as_double(b[c]);
  return sum;
}

// f(shard, first row within the shard, rows, thread); a block is within one view, so its rows are neighbors in e_all.
template <typename F>
void for_each_anchor_block(const CpuExec& exec, const InfoNceProblem& p, F&& f) {
  const int64_t blocks = count_blocks(p.shard_images, kAnchorBlock);
  parallel_for(exec, p.shards * 2 * blocks, [&](int64_t task, int thread) {
    const int64_t shard = task / (2 * blocks), view = task / blocks % 2, first = task % blocks * kAnchorBlock;
    f(shard, view * p.shard_images + first, std::min(kAnchorBlock, p.shard_images - first), thread);
  });
}

float* thread_floats(const CpuExec& exec, int thread, int64_t count) {
  SIMCLR_CHECK(bytes_of<float>(count) <= exec.thread_scratch_bytes,
               "a thread needs {} floats of scratch, {} bytes are there", count, exec.thread_scratch_bytes);
  return reinterpret_cast<float*>(exec.scratch_of(thread));
}

struct AnchorResult {
  double loss, negative_weight, positive_weight;
};

// From similarities s_ij in `row` [2B] to E_ij in the same place.
AnchorResult finish_row(const ConstFloatMatrix& e_all, const InfoNceProblem& p, int64_t anchor, float* row) {
  const int64_t positive = (anchor + p.batch) % p.keys();
  row[anchor] = row[positive] = -INFINITY;  // exp gives exactly 0: neither is a negative
  const float shift = row_max(row, p.keys());
  const double sum = exponentiate_row(row, p.keys(), shift, to_float(1.0 / p.temperature));  // n_i
  const double s_positive = dot(e_all.row(anchor), e_all.row(positive), p.columns);
  // log(N_i / exp(l_ip)): how far the negatives together are above the positive
  const double gap = std::log(sum) + (as_double(shift) - s_positive + p.margin) / p.temperature;
  const double q = p.decoupled ? 1.0 : 1.0 / (1.0 + std::exp(-gap));
  const double weight = q / (as_double(p.keys()) * p.temperature);
  return {.loss = p.decoupled ? gap : std::max(gap, 0.0) + std::log1p(std::exp(-std::abs(gap))),
          .negative_weight = weight / sum,
          .positive_weight = weight};
}

// grad holds keys first, first + 1, ...: for those whose positive is an anchor of `shard`, grad_j -= v_pos(j) e_pos(j).
void subtract_positives(const ConstFloatMatrix& e_all, const InfoNceProblem& p, const InfoNceSaved& saved,
                        int64_t shard, int64_t first, const FloatMatrix& grad) {
  for (int64_t row = 0; row < 2 * p.shard_images; ++row) {
    const int64_t anchor = p.global_row(shard, row), key = (anchor + p.batch) % p.keys();
    if (key < first || key >= first + grad.rows) continue;
    const double v = saved.positive_weights[shard * 2 * p.shard_images + row];
    float* grad_row = grad.row(key - first);
    for (int64_t c = 0; c < p.columns; ++c) grad_row[c] = to_float(grad_row[c] - v * e_all.row(anchor)[c]);
  }
}

}  // namespace

void infonce_forward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                     const InfoNceSaved& saved, std::span<double> shard_loss) {
  for_each_anchor_block(exec, p, [&](int64_t shard, int64_t first, int64_t rows, int) {
    const FloatMatrix s = saved.shard(p, shard).slice(first, rows);                    // [rows, 2B]
    const ConstFloatMatrix e_anchors = e_all.slice(p.global_row(shard, first), rows);  // [rows, C]
    gemm(e_anchors, Op::kNone, e_all, Op::kTranspose, {}, s);                          // 'ac,bc->ab'
    for (int64_t i = 0; i < rows; ++i) {
      const AnchorResult result = finish_row(e_all, p, p.global_row(shard, first + i), s.row(i));
      const int64_t anchor = shard * 2 * p.shard_images + first + i;
      saved.losses[anchor] = result.loss;
      saved.negative_weights[anchor] = result.negative_weight;
      saved.positive_weights[anchor] = result.positive_weight;
    }
  });
  for (int64_t shard = 0; shard < p.shards; ++shard) {
    const double* losses = saved.losses + shard * 2 * p.shard_images;  // [2n]
    double sum = 0;
    for (int64_t i = 0; i < 2 * p.shard_images; ++i) sum += losses[i];
    shard_loss[shard] = sum;
  }
}

void infonce_backward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys) {
  const int64_t shard_rows = 2 * p.shard_images;
  const int64_t weighted_elements = aligned_elements(shard_rows, p.columns);
  float* weighted = workspace_as<float>(exec, p.shards * weighted_elements);  // [shards][2n, C]

  // Anchor side. s_ij = <e_i, e_j>: ds_ij/de_i = e_j, so grad_i = w_i sum_j E_ij e_j - v_i e_pos(i)      'ab,bc->ac'
  // On the way w_i e_i for the key side, where G^T e_anchors = E^T (w e_anchors) apart from positives.
  for_each_anchor_block(exec, p, [&](int64_t shard, int64_t first, int64_t rows, int thread) {
    const FloatMatrix sums{thread_floats(exec, thread, rows * p.columns), rows, p.columns, p.columns};  // [rows, C]
    gemm(saved.shard(p, shard).slice(first, rows), Op::kNone, e_all, Op::kNone, {}, sums);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t anchor = shard * shard_rows + first + i, global = p.global_row(shard, first + i);
      const double w = saved.negative_weights[anchor], v = saved.positive_weights[anchor];
      const float* e_row = e_all.row(global);
      const float* e_positive = e_all.row((global + p.batch) % p.keys());
      float* grad_row = grad_anchors.row(anchor);
      float* weighted_row = weighted + shard * weighted_elements + (first + i) * p.columns;
      for (int64_t c = 0; c < p.columns; ++c) {
        grad_row[c] = to_float(w * sums.row(i)[c] - v * e_positive[c]);
        weighted_row[c] = to_float(w * e_row[c]);
      }
      std::fill(grad_row + p.columns, grad_row + grad_anchors.stride, 0.0F);
    }
  });

  // Key side. ds_ij/de_j = e_i, so grad_j = sum_i E_ij (w_i e_i) - v_pos(j) e_pos(j): a sum over each shard's anchors,
  // then over shards in tree order.                                                                      'ab,ac->bc'
  parallel_for(exec, count_blocks(p.keys(), kKeyBlock), [&](int64_t block, int thread) {
    const int64_t first = block * kKeyBlock, rows = std::min(kKeyBlock, p.keys() - first);
    const int64_t block_elements = aligned_elements(rows, p.columns);
    float* sums = thread_floats(exec, thread, p.shards * block_elements);  // [shards][rows, C]
    for (int64_t shard = 0; shard < p.shards; ++shard) {
      const ConstFloatMatrix e_columns{saved.shard(p, shard).data + first, shard_rows, rows, p.keys()};  // [2n, rows]
      const ConstFloatMatrix anchors{weighted + shard * weighted_elements, shard_rows, p.columns, p.columns};
      const FloatMatrix grad{sums + shard * block_elements, rows, p.columns, p.columns};  // [rows, C]
      gemm(e_columns, Op::kTranspose, anchors, Op::kNone, {}, grad);
      subtract_positives(e_all, p, saved, shard, first, grad);
    }
    ordered_tree_sum<float>([&](int64_t s) { return sums + s * block_elements; }, p.shards, 0, rows * p.columns);
    for (int64_t j = 0; j < rows; ++j) {
      float* grad_row = grad_keys.row(first + j);
      std::copy_n(sums + j * p.columns, p.columns, grad_row);
      std::fill(grad_row + p.columns, grad_row + grad_keys.stride, 0.0F);
    }
  });
}

void infonce_mean_loss(const CpuExec&, const double* total, int64_t keys, double* loss) {
  *loss = *total / as_double(keys);
}

}  // namespace simclr::detail
