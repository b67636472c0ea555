// CUDA: two launches for all arrays. The lanes of a block of elements are the threads of a CUDA block.
#include "kernels/common/block_sum.cuh"
#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/squared_norm/squared_norm.h"

namespace simclr::detail {
namespace {

constexpr int64_t kMostBlocks = 1024;  // a CUDA block walks over the whole table, so more would only walk

// A product of two floats is exact in double, so a fused and a separate addition round alike.
__device__ float element_of(const NormRun& run, int64_t i) {
  if (run.other == nullptr) return run.values[i];
  return to_float(as_double(run.values[i]) + as_double(run.scale) * as_double(run.other[i]));
}

// The blocks of all runs in one row, dealt to the CUDA blocks in turn.
__global__ void __launch_bounds__(kNormLanes) square_blocks_kernel(const NormRun* runs, int count, double* partials) {
  __shared__ double of_warp[kMostWarps];
  int64_t block = blockIdx.x;  // the next one, counted from the start of the run
  for (int k = 0; k < count; ++k) {
    const NormRun run = runs[k];
    const int64_t blocks = ceil_div(run.elements, kNormBlock);
    for (; block < blocks; block += gridDim.x) {
      const int64_t rest = run.elements - block * kNormBlock;
      const int elements = static_cast<int>(rest < kNormBlock ? rest : kNormBlock);
      double lane = 0;
      for (int i = threadIdx.x; i < elements; i += kNormLanes) {
        const double x = element_of(run, block * kNormBlock + i);
        lane += x * x;
      }
      lane = block_reduce(lane, Add(), of_warp);
      if (threadIdx.x == 0) partials[block] = lane;
    }
    block -= blocks;
    partials += blocks;
  }
}

// One CUDA block a run: the tree over its blocks, in place.
__global__ void finish_runs_kernel(const NormRun* runs, double* partials, double* squares) {
  for (unsigned k = 0; k < blockIdx.x; ++k) partials += ceil_div(runs[k].elements, kNormBlock);
  const int64_t blocks = ceil_div(runs[blockIdx.x].elements, kNormBlock);
  for (int64_t step = 1; step < blocks; step *= 2) {
    for (int64_t i = 2 * step * threadIdx.x; i + step < blocks; i += 2 * step * blockDim.x) {
      partials[i] += partials[i + step];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) squares[blockIdx.x] = blocks > 0 ? partials[0] : 0.0;
}

__global__ void __launch_bounds__(kNormLanes) total_kernel(const double* squares, int64_t count, double* total) {
  __shared__ double of_warp[kMostWarps];
  double lane = 0;
  for (int64_t k = threadIdx.x; k < count; k += kNormLanes) lane += squares[k];
  lane = block_reduce(lane, Add(), of_warp);
  if (threadIdx.x == 0) *total = lane;
}

}  // namespace

void squared_norms(const CudaExec& exec, const NormTable& table, double* squares) {
  if (table.runs.empty()) return;
  int64_t blocks = 0;
  for (const NormRun& r : table.runs) blocks += ceil_div(r.elements, kNormBlock);
  auto* partials = workspace_as<double>(exec, blocks);  // [blocks], run after run
  if (blocks > 0) {
    launch(exec, "square_blocks", {.blocks = blocks_of(std::min(blocks, kMostBlocks)), .threads = kNormLanes},
           square_blocks_kernel, table.on_device, static_cast<int>(table.runs.size()), partials);
  }
  launch(exec, "finish_squared_norms", {.blocks = blocks_of(table.runs.size()), .threads = kThreads},
         finish_runs_kernel, table.on_device, partials, squares);
}

void total_squared_norm(const CudaExec& exec, const double* squares, int64_t count, double* total) {
  launch(exec, "total_squared_norm", {.threads = kNormLanes}, total_kernel, squares, count, total);
}

}  // namespace simclr::detail
