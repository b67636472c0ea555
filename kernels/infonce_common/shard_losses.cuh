// The sum of the losses of each shard on CUDA, the last step of forward in both algorithms. Only for *.cu files.
#pragma once

#include <span>

#include "kernels/common/block_sum.cuh"
#include "kernels/common/launch.cuh"
#include "kernels/infonce_common/infonce_problem.h"

namespace simclr::detail {

// One block a shard: sum of its losses [2n].
static __global__ void sum_losses_kernel(const double* losses, int64_t shard_rows, double* shard_loss) {
  __shared__ double of_warp[kMostWarps];
  double partial = 0;
  for (int64_t i = threadIdx.x; i < shard_rows; i += blockDim.x) partial += losses[blockIdx.x * shard_rows + i];
  const double sum = block_reduce(partial, Add(), of_warp);
  if (threadIdx.x == 0) shard_loss[blockIdx.x] = sum;
}

// shard_loss[s] = sum of losses [2n] of the rank's shard s, in one order.        losses [shards * 2n], on the GPU
inline void sum_shard_losses(const CudaExec& exec, const double* losses, const InfoNceProblem& p,
                             std::span<double> shard_loss) {
  launch(exec, "infonce_sum_losses", {.blocks = blocks_of(p.shards), .threads = kThreads}, sum_losses_kernel, losses,
         2 * p.shard_images, shard_loss.data());
}

}  // namespace simclr::detail
