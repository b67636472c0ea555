// CUDA: the sums of rows over negatives, and what forward leaves of a row. Every row reads its tiles for itself
// (streaming_cuda_plan.h), also where the rank owns both sides of a pair: no two blocks write to one place, and a row's
// order is plain.
#include <cmath>

#include "kernels/common/block_sum.cuh"
#include "kernels/common/numbers.h"
#include "kernels/infonce_common/shard_losses.cuh"
#include "kernels/infonce_streaming/infonce_streaming.h"
#include "kernels/infonce_streaming/streaming_tile.cuh"

namespace simclr::detail {
namespace {

// Of a number and a NaN, the NaN.
struct LargerOrNan {
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

// Over the threads that share a row: the tree over neighbors, the same bits in each.
template <typename T, typename Combine>
__device__ T reduce_row(T value, Combine combine) {
#pragma unroll
  for (int step = 1; step < kThreadsOfRow; step *= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, step));
  }
  return value;
}

// A row's sum of exp((s - top) / tau) over negatives.
struct RowSum {
  double sum = 0;
  float top;

  // Adds other * exp((other_top - top) / tau); an other_top of -infinity says that there is nothing.
  __device__ void add(double other, float other_top, double temperature) {
    if (other_top == -INFINITY) return;
    const double difference = (as_double(other_top) - as_double(top)) / temperature;
    if (!(difference <= 0)) {  // a NaN takes the place of any top
      sum = sum * exp(-difference) + other;
      top = other_top;
    } else {
      sum += difference == 0 ? other : other * exp(difference);
    }
  }
};

// sums, tops [spans][anchors]. Two blocks a multiprocessor are what shared memory has room for on an A100.
template <typename Products>
__global__ void __launch_bounds__(kBlockThreads, 2)
    sum_negatives_kernel(StreamingTask task, double* sums, float* tops) {
  const SharedTile<Products> shared;
  shared.find_rows(task);
  __syncthreads();
  const RowPart part(task, shared);
  RowSum total{.top = task.fixed_shift ? 1.0F : -INFINITY};
  const int64_t begin = blockIdx.y * task.span_tiles, end = min(begin + task.span_tiles, task.tiles);
  for (int64_t tile = begin; tile < end; ++tile) {
    shared.multiply(task, tile, tile == begin);
    float s[kColumnsOfThread];
    float top = -INFINITY;
#pragma unroll
    for (int i = 0; i < kColumnsOfThread; ++i) {
      const bool negative = part.is_negative(task, tile * kColumnTile + part.column(i));
      s[i] = negative ? shared.similarities[part.row * shared.kSimilarityStride + part.column(i)] : -INFINITY;
      top = LargerOrNan()(top, s[i]);
    }
    float sum = 0.0F;
    if (task.fixed_shift) {
#pragma unroll
      for (int i = 0; i < kColumnsOfThread; ++i) sum += s[i] == -INFINITY ? 0.0F : shifted_exp(task, s[i]);
      total.sum += as_double(reduce_row(sum, Add()));
    } else {
      top = reduce_row(top, LargerOrNan());
#pragma unroll
      for (int i = 0; i < kColumnsOfThread; ++i) sum += exp_of((s[i] - top) * task.scale);
      total.add(as_double(reduce_row(sum, Add())), top, task.temperature);
    }
  }
  if (part.self < 0 || part.thread != 0) return;
  const int64_t at = blockIdx.y * task.anchors + int64_t{blockIdx.x} * kRowTile + part.row;
  sums[at] = total.sum;
  tops[at] = total.top;
}

// One warp an anchor: its spans in order, its positive in double, what forward leaves of it.
__global__ void finish_rows_kernel(StreamingTask task, const double* sums, const float* tops, int64_t spans,
                                   double* losses, double* log_denominators, double* positive_weights) {
  const int64_t anchor = (thread_index()) / warpSize;
  if (anchor >= task.anchors) return;
  const int lane = threadIdx.x % warpSize;
  const int64_t self = task.rows.global_row(anchor);
  const float *e = task.rows.row(self), *e_positive = task.rows.row(task.rows.positive_of(self));
  double s_positive = 0;
  for (int64_t c = lane; c < task.rows.columns; c += warpSize) {
    s_positive += as_double(e[c]) * as_double(e_positive[c]);
  }
  s_positive = warp_reduce(s_positive, Add());
  if (lane != 0) return;
  RowSum total{.top = task.fixed_shift ? 1.0F : -INFINITY};
  for (int64_t span = 0; span < spans; ++span) {
    total.add(sums[span * task.anchors + anchor], tops[span * task.anchors + anchor], task.temperature);
  }
  // log(N_i / exp(l_ip)): how far the negatives together are above the positive
  const double gap = log(total.sum) + (as_double(total.top) - s_positive + task.margin) / task.temperature;
  const double loss = task.decoupled ? gap : fmax(gap, 0.0) + log1p(exp(-fabs(gap)));
  losses[anchor] = loss;
  log_denominators[anchor] = (s_positive - task.margin) / task.temperature + loss;
  positive_weights[anchor] = task.decoupled ? 1.0 : 1.0 / (1.0 + exp(-gap));
}

}  // namespace

void streaming_forward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                       const StreamingSaved& saved, std::span<double> shard_loss) {
  const StreamingCudaPlan plan(p);
  const StreamingTask task = task_of(e_all, p, plan);
  auto* workspace = workspace_as<std::byte>(exec, plan.bytes);
  auto* sums = reinterpret_cast<double*>(workspace + plan.row_sums);
  auto* tops = reinterpret_cast<float*>(workspace + plan.row_tops);
  with_products(p, [&](auto products) {
    using Products = decltype(products);
    launch(exec, "streaming_sum_negatives", tile_grid(plan, 1, SharedTile<Products>::kBytes),
           sum_negatives_kernel<Products>, task, sums, tops);
  });
  constexpr int kWarpsOfBlock = 4;
  launch(exec, "streaming_finish_rows",
         {.blocks = blocks_of(ceil_div(p.anchors(), kWarpsOfBlock)), .threads = kWarpsOfBlock * 32}, finish_rows_kernel,
         task, sums, tops, plan.spans, saved.losses, saved.log_denominators, saved.positive_weights);
  sum_shard_losses(exec, saved.losses, p, shard_loss);
}

}  // namespace simclr::detail
