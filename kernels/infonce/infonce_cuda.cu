// CUDA: products by cuBLAS, one call per shard and product, so that a call's shape and the alignment of its operands
// are the same for every number of ranks; all else in kernels of its own, one block a row, whose sums have one order.
#include <cmath>

#include "kernels/common/block_sum.cuh"
#include "kernels/common/cuda_check.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/common/ordered_tree.cuh"
#include "kernels/infonce/blocks.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce_common/anchor_rows.cuh"
#include "kernels/infonce_common/exp.cuh"
#include "kernels/infonce_common/shard_losses.cuh"

namespace simclr::detail {
namespace {

// ---- products, row-major as everywhere in this program; cuBLAS takes them as their transposes ----

struct Factor {
  const float* data;
  int64_t stride;  // floats from row to row
  cublasOperation_t op = CUBLAS_OP_N;
  int64_t batch_stride = 0;  // floats from batch to batch
};
struct Product {
  int64_t rows, cols, terms;
  float* out;
  int64_t stride, batch_stride = 0;
  int batches = 1;
};

int as_int(int64_t value) {
  SIMCLR_CHECK(value <= INT32_MAX, "a product with a size of {}", value);
  return static_cast<int>(value);
}

// out [rows, cols] = left [rows, terms] right [terms, cols] in true single precision: no TF32, whatever the handle
// is set to.
void multiply(const CudaExec& exec, const Factor& left, const Factor& right, const Product& p) {
  const float one = 1.0F, zero = 0.0F;
  SIMCLR_CUBLAS(cublasGemmStridedBatchedEx(
      exec.blas, right.op, left.op, as_int(p.cols), as_int(p.rows), as_int(p.terms), &one, right.data, CUDA_R_32F,
      as_int(right.stride), right.batch_stride, left.data, CUDA_R_32F, as_int(left.stride), left.batch_stride, &zero,
      p.out, CUDA_R_32F, as_int(p.stride), p.batch_stride, p.batches, CUBLAS_COMPUTE_32F_PEDANTIC,
      CUBLAS_GEMM_DEFAULT));
}

// ---- forward ----

struct ForwardScale {
  double temperature, margin, keys;
  float inverse_temperature;
  bool decoupled;
};

// One block an anchor: from similarities s_ij in its row [2B] to E_ij in the same place, loss_i, w_i and v_i.
__global__ void finish_rows_kernel(float* similarities, int64_t shard_elements, AnchorRows rows, ForwardScale scale,
                                   double* losses, double* negative_weights, double* positive_weights) {
  __shared__ float float_of_warp[kMostWarps];
  __shared__ double double_of_warp[kMostWarps];
  const int64_t anchor = blockIdx.x, shard_rows = 2 * rows.shard_images, keys = 2 * rows.batch;
  const int64_t self = rows.global_row(anchor), positive = rows.positive_of(self);
  float* row = similarities + anchor / shard_rows * shard_elements + anchor % shard_rows * keys;  // [2B]

  float top = -INFINITY;
  for (int64_t j = threadIdx.x; j < keys; j += blockDim.x) {
    if (j != self && j != positive) top = fmaxf(top, row[j]);
  }
  const float shift = block_reduce(top, Larger(), float_of_warp);

  double partial = 0;
  for (int64_t j = threadIdx.x; j < keys; j += blockDim.x) {
    const bool negative = j != self && j != positive;
    const float e = negative ? exp_of((row[j] - shift) * scale.inverse_temperature) : 0.0F;
    row[j] = e;
    partial += e;
  }
  const double sum = block_reduce(partial, Add(), double_of_warp);  // n_i

  partial = 0;
  for (int64_t c = threadIdx.x; c < rows.columns; c += blockDim.x) {
    partial += as_double(rows.row(self)[c]) * rows.row(positive)[c];
  }
  const double s_positive = block_reduce(partial, Add(), double_of_warp);

  if (threadIdx.x != 0) return;
  // log(N_i / exp(l_ip)): how far the negatives together are above the positive
  const double gap = log(sum) + (as_double(shift) - s_positive + scale.margin) / scale.temperature;
  const double q = scale.decoupled ? 1.0 : 1.0 / (1.0 + exp(-gap));
  const double weight = q / (scale.keys * scale.temperature);
  losses[anchor] = scale.decoupled ? gap : fmax(gap, 0.0) + log1p(exp(-fabs(gap)));
  negative_weights[anchor] = weight / sum;
  positive_weights[anchor] = weight;
}

// ---- backward ----

// grad_i = w_i sum_j E_ij e_j - v_i e_pos(i). The sums [shards][2n, C] are in `sums`, where w_i e_i of the same element
// takes their place.
__global__ void finish_anchors_kernel(float* sums, int64_t sums_elements, AnchorRows rows,
                                      const double* negative_weights, const double* positive_weights, float* grad,
                                      int64_t grad_stride) {
  const int64_t anchor = blockIdx.x, shard_rows = 2 * rows.shard_images, self = rows.global_row(anchor);
  float* sum = sums + anchor / shard_rows * sums_elements + anchor % shard_rows * rows.columns;  // [C]
  const float* e = rows.row(self);
  const float* e_positive = rows.row(rows.positive_of(self));
  const double w = negative_weights[anchor], v = positive_weights[anchor];
  for (int64_t c = threadIdx.x; c < grad_stride; c += blockDim.x) {
    float value = 0.0F;  // of the padding
    if (c < rows.columns) {
      value = to_float(w * sum[c] - v * e_positive[c]);
      sum[c] = to_float(w * e[c]);
    }
    grad[anchor * grad_stride + c] = value;
  }
}

// grad_j = sum over shards, in tree order, of the shard's part [2B, C]; the part of the shard that pos(j) is an anchor
// of is less by v_pos(j) e_pos(j).
__global__ void finish_keys_kernel(const float* parts, int64_t part_elements, AnchorRows rows,
                                   const double* positive_weights, float* grad, int64_t grad_stride) {
  const int64_t key = blockIdx.x, positive = rows.positive_of(key), image = positive % rows.batch;
  const int64_t shard = image / rows.shard_images - rows.first_shard;  // of the positive; not this rank's: none below
  const float* e_positive = rows.row(positive);
  double v = 0;
  if (shard >= 0 && shard < rows.shards) {
    const int64_t view = positive / rows.batch;
    v = positive_weights[(2 * shard + view) * rows.shard_images + image % rows.shard_images];
  }
  for (int64_t c = threadIdx.x; c < grad_stride; c += blockDim.x) {
    float value = 0.0F;  // of the padding
    if (c < rows.columns) {
      value = ordered_tree_value<float>(
          [&](int s) {
            const float part = parts[s * part_elements + key * rows.columns + c];
            return s == shard ? to_float(part - v * e_positive[c]) : part;
          },
          rows.shards);
    }
    grad[key * grad_stride + c] = value;
  }
}

// A block a row of C elements.
Grid row_grid(int64_t rows, int64_t columns) {
  constexpr int64_t kMostThreads = 128;
  return {.blocks = blocks_of(rows), .threads = static_cast<unsigned>(std::min(kMostThreads, round_up(columns, 32)))};
}

__global__ void mean_loss_kernel(const double* total, double keys, double* loss) {
  *loss = *total / keys;
}

}  // namespace

void infonce_forward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                     const InfoNceSaved& saved, std::span<double> shard_loss) {
  const int64_t n = p.shard_images;
  for (int64_t shard = 0; shard < p.shards; ++shard) {  // 'ac,bc->ab', the shard's rows of view 1, then of view 2
    const Factor e_anchors{e_all.row(p.global_row(shard, 0)), e_all.stride, CUBLAS_OP_N, p.batch * e_all.stride};
    const Factor e_keys{e_all.data, e_all.stride, CUBLAS_OP_T};
    multiply(exec, e_anchors, e_keys,
             {.rows = n,
              .cols = p.keys(),
              .terms = p.columns,
              .out = saved.shard(p, shard).data,  // [2n, 2B]
              .stride = p.keys(),
              .batch_stride = n * p.keys(),
              .batches = 2});
  }
  const ForwardScale scale{p.temperature, p.margin, as_double(p.keys()), to_float(1.0 / p.temperature), p.decoupled};
  launch(exec, "infonce_finish_rows", {.blocks = blocks_of(p.anchors()), .threads = kThreads}, finish_rows_kernel,
         saved.exponentials, saved.shard_elements, anchor_rows(e_all, p), scale, saved.losses, saved.negative_weights,
         saved.positive_weights);
  sum_shard_losses(exec, saved.losses, p, shard_loss);
}

void infonce_backward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys) {
  SIMCLR_CHECK(p.shards <= kMostTreeParts, "{} shards, at most {}", p.shards, kMostTreeParts);
  const int64_t shard_rows = 2 * p.shard_images, keys = p.keys(), columns = p.columns;
  const int64_t sums_elements = aligned_elements(shard_rows, columns);
  const int64_t part_elements = aligned_elements(keys, columns);
  auto* sums = workspace_as<float>(exec, p.shards * (sums_elements + part_elements));
  float* parts = sums + p.shards * sums_elements;  // [shards][2B, C]
  const AnchorRows rows = anchor_rows(e_all, p);

  // Anchor side                                                                                          'ab,bc->ac'
  for (int64_t shard = 0; shard < p.shards; ++shard) {
    multiply(exec, {saved.shard(p, shard).data, keys}, {e_all.data, e_all.stride},
             {.rows = shard_rows,
              .cols = columns,
              .terms = keys,
              .out = sums + shard * sums_elements,  // [2n, C]
              .stride = columns});
  }
  launch(exec, "infonce_finish_anchors", row_grid(p.anchors(), columns), finish_anchors_kernel, sums, sums_elements,
         rows, saved.negative_weights, saved.positive_weights, grad_anchors.data, grad_anchors.stride);

  // Key side, with w_i e_i now in `sums`                                                                 'ab,ac->bc'
  for (int64_t shard = 0; shard < p.shards; ++shard) {
    multiply(exec, {saved.shard(p, shard).data, keys, CUBLAS_OP_T}, {sums + shard * sums_elements, columns},
             {.rows = keys,
              .cols = columns,
              .terms = shard_rows,
              .out = parts + shard * part_elements,  // [2B, C]
              .stride = columns});
  }
  launch(exec, "infonce_finish_keys", row_grid(keys, columns), finish_keys_kernel, parts, part_elements, rows,
         saved.positive_weights, grad_keys.data, grad_keys.stride);
}

void infonce_mean_loss(const CudaExec& exec, const double* total, int64_t keys, double* loss) {
  launch(exec, "infonce_mean_loss", {}, mean_loss_kernel, total, as_double(keys), loss);
}

}  // namespace simclr::detail
