// CUDA: the gradient, from similarities made again. Both sides of a pair weigh in one product, since s is symmetric and
// the log-denominators of all rows are there.
#include <algorithm>
#include <cmath>

#include "kernels/common/numbers.h"
#include "kernels/infonce_streaming/infonce_streaming.h"
#include "kernels/infonce_streaming/streaming_tile.cuh"

namespace simclr::detail {
namespace {

// What a row's weights need of it: 1 / denominator under the fixed shift, else tau * log of the denominator in two
// floats. by_shard [2B]; numbers [2][2B] in the global order.
__global__ void lay_out_denominators_kernel(StreamingTask task, const double* by_shard, float* numbers) {
  const int64_t row = thread_index();
  if (row >= task.keys()) return;
  const double d = by_shard[task.rows.place_by_shards(row)];
  const double number = task.fixed_shift ? exp(1 / task.temperature - d) : d * task.temperature;
  numbers[row] = to_float(number);
  numbers[task.keys() + row] = to_float(number - as_double(numbers[row]));
}

// exp((s - number of a row) / tau)
__device__ float weight_below(const StreamingTask& task, float similarity, float high, float low) {
  return exp_of(((similarity - high) - low) * task.scale);
}

// From similarities of tile `tile` to weights p_ij + p_ji, 0 where j is not a negative of i.
template <typename Products>
__device__ void weigh(const StreamingTask& task, const SharedTile<Products>& shared, const RowPart& part, int64_t tile,
                      const float* numbers) {
  const float* low_numbers = numbers + task.keys();
  const int64_t self = part.self < 0 ? 0 : part.self;
  const float of_row = numbers[self], of_row_low = low_numbers[self];
#pragma unroll
  for (int i = 0; i < kColumnsOfThread; ++i) {
    const int64_t key = tile * kColumnTile + part.column(i);
    float weight = 0.0F;
    if (part.is_negative(task, key)) {
      const float s = shared.similarities[part.row * shared.kSimilarityStride + part.column(i)];
      weight = task.fixed_shift
                   ? shifted_exp(task, s) * (of_row + numbers[key])
                   : weight_below(task, s, of_row, of_row_low) + weight_below(task, s, numbers[key], low_numbers[key]);
    }
    shared.weights[part.row * shared.kWeightStride + part.column(i)] = Products::to_element(weight);
  }
}

// gradients [spans][anchors, C] = sum over the span's negatives j of (p_kj + p_jk) e_j. A block has kChunks chunks of C
// in its registers, from chunk blockIdx.z * kChunks on.
template <typename Products, int kChunks>
__global__ void __launch_bounds__(kBlockThreads)
    sum_gradients_kernel(StreamingTask task, const float* numbers, float* gradients) {
  const SharedTile<Products> shared;
  shared.find_rows(task);
  __syncthreads();
  const RowPart part(task, shared);
  const int64_t first_chunk = static_cast<int64_t>(blockIdx.z) * kChunks;
  typename Products::Sum sums[kChunks][SharedTile<Products>::kPartsOfWarp];
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int i = 0; i < shared.kPartsOfWarp; ++i) wmma::fill_fragment(sums[c][i], 0.0F);
  }
  const int64_t begin = blockIdx.y * task.span_tiles, end = min(begin + task.span_tiles, task.tiles);
  for (int64_t tile = begin; tile < end; ++tile) {
    shared.multiply(task, tile, tile == begin);
    weigh(task, shared, part, tile, numbers);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (first_chunk + c >= task.chunks) continue;
      if (task.chunks > 1) {
        __syncthreads();  // the chunk before has been read
        shared.load_columns(task, tile, first_chunk + c);
        __syncthreads();
      }
      shared.accumulate(shared.chunk_width(task, first_chunk + c), sums[c]);
    }
  }
  const int row = static_cast<int>(threadIdx.x) / 32 % kRowParts * kPart;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (first_chunk + c >= task.chunks) continue;
    __syncthreads();  // what lay there has been read
#pragma unroll
    for (int i = 0; i < shared.kPartsOfWarp; ++i) {
      wmma::store_matrix_sync(shared.sums + row * shared.kSumStride + shared.column_of_part(i), sums[c][i],
                              shared.kSumStride, wmma::mem_row_major);
    }
    __syncthreads();
    const int width = shared.chunk_width(task, first_chunk + c);
    for (int k = threadIdx.x; k < kRowTile * kDepthChunk; k += kBlockThreads) {
      const int r = k / kDepthChunk, column = k % kDepthChunk;
      if (shared.global_row[r] < 0 || column >= width) continue;
      const int64_t anchor = static_cast<int64_t>(blockIdx.x) * kRowTile + r;
      gradients[(blockIdx.y * task.anchors + anchor) * task.rows.columns + (first_chunk + c) * kDepthChunk + column] =
          shared.sums[r * shared.kSumStride + column];
    }
  }
}

// One block an anchor: its spans in order, and the pull of its positive.
__global__ void finish_gradients_kernel(StreamingTask task, const float* gradients, int64_t spans,
                                        const double* positive_weights, float* grad, int64_t grad_stride) {
  const int64_t anchor = blockIdx.x, n = task.rows.shard_images, columns = task.rows.columns;
  const int64_t partner = (anchor / n ^ 1) * n + anchor % n;  // the other view, in the same shard
  const float* e_positive = task.rows.row(task.rows.positive_of(task.rows.global_row(anchor)));
  const double pull = positive_weights[anchor] + positive_weights[partner];
  const double scale = 1 / (as_double(task.keys()) * task.temperature);
  for (int64_t c = threadIdx.x; c < grad_stride; c += blockDim.x) {
    float value = 0.0F;  // of the padding
    if (c < columns) {
      double sum = 0;
      for (int64_t span = 0; span < spans; ++span) {
        sum += as_double(gradients[(span * task.anchors + anchor) * columns + c]);
      }
      value = to_float(scale * (sum - pull * as_double(e_positive[c])));
    }
    grad[anchor * grad_stride + c] = value;
  }
}

}  // namespace

void streaming_backward(const CudaExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e) {
  const StreamingCudaPlan plan(p);
  const StreamingTask task = task_of(e_all, p, plan);
  auto* workspace = workspace_as<std::byte>(exec, plan.bytes);
  auto* numbers = reinterpret_cast<float*>(workspace + plan.denominators);
  auto* gradients = reinterpret_cast<float*>(workspace + plan.gradients);
  launch(exec, "streaming_denominators", {.blocks = blocks_of(ceil_div(p.keys(), kThreads)), .threads = kThreads},
         lay_out_denominators_kernel, task, log_denominators.data(), numbers);
  with_products(p, [&](auto products) {
    using Products = decltype(products);
    const auto sum_gradients = [&](auto kernel, int64_t chunks_of_block) {
      launch(exec, "streaming_sum_gradients",
             tile_grid(plan, ceil_div(plan.chunks, chunks_of_block), SharedTile<Products>::kBytes), kernel, task,
             static_cast<const float*>(numbers), gradients);
    };
    if (plan.chunks == 1) {
      sum_gradients(sum_gradients_kernel<Products, 1>, 1);
    } else if (plan.chunks == 2) {
      sum_gradients(sum_gradients_kernel<Products, 2>, 2);
    } else {
      sum_gradients(sum_gradients_kernel<Products, 4>, 4);
    }
  });
  const auto threads = static_cast<unsigned>(std::min<int64_t>(128, round_up(p.columns, 32)));
  launch(exec, "streaming_finish_gradients", {.blocks = blocks_of(p.anchors()), .threads = threads},
         finish_gradients_kernel, task, gradients, plan.spans, saved.positive_weights, grad_e.data, grad_e.stride);
}

}  // namespace simclr::detail
