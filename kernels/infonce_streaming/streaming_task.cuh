// Arguments of the kernels of streaming InfoNCE, and what their forward and backward have in common, next to the
// products of a tile (streaming_tile.cuh). Only for *.cu files.
#pragma once

#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/infonce_common/anchor_rows.cuh"
#include "kernels/infonce_common/exp.cuh"
#include "kernels/infonce_streaming/streaming_cuda_plan.h"
#include "kernels/infonce_streaming/tensor_products.cuh"

namespace simclr::detail {

inline constexpr int kBlockThreads = 256;  // 8 warps, each with 16 x 16 similarities
inline constexpr int kRowParts = kRowTile / kPart;
inline constexpr int kThreadsOfRow = kBlockThreads / kRowTile;        // 4, neighboring lanes
inline constexpr int kColumnsOfThread = kColumnTile / kThreadsOfRow;  // columns t, t + 4, t + 8 ...
static_assert(kRowParts * (kColumnTile / kPart) * 32 == kBlockThreads);

// Arguments of a kernel.
struct StreamingTask {
  AnchorRows rows;
  int64_t anchors, span_tiles, tiles, chunks;
  double temperature, margin;
  float scale, scale_low;  // 1/tau as the sum of two floats
  bool fixed_shift, decoupled;

  __device__ int64_t keys() const { return 2 * rows.batch; }
};

// exp((s - 1) / tau)
__device__ inline float shifted_exp(const StreamingTask& task, float similarity) {
  const float below = similarity - 1.0F;
  return exp_of(below * task.scale + below * task.scale_low);
}

inline StreamingTask task_of(const ConstFloatMatrix& e_all, const InfoNceProblem& p, const StreamingCudaPlan& plan) {
  const double scale = 1 / p.temperature;
  return {.rows = anchor_rows(e_all, p),
          .anchors = p.anchors(),
          .span_tiles = plan.span_tiles,
          .tiles = plan.tiles,
          .chunks = plan.chunks,
          .temperature = p.temperature,
          .margin = p.margin,
          .scale = to_float(scale),
          .scale_low = to_float(scale - as_double(to_float(scale))),
          .fixed_shift = p.temperature >= (2 + p.margin) / 86,
          .decoupled = p.decoupled};
}

// f(products) with the kind that the problem asks for.
template <typename F>
void with_products(const InfoNceProblem& p, F&& f) {
  if (p.products == DataType::kBfloat16) {
    f(Bfloat16Products());
  } else {
    f(SinglePrecisionProducts());
  }
}

inline Grid tile_grid(const StreamingCudaPlan& plan, int64_t slices, size_t shared_bytes) {
  return {.blocks = dim3(static_cast<unsigned>(plan.row_tiles), static_cast<unsigned>(plan.spans),
                         static_cast<unsigned>(slices)),
          .threads = kBlockThreads,
          .shared_bytes = shared_bytes};
}

}  // namespace simclr::detail
