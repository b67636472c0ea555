// Which elements a thread of the batch norm kernels has: blocks of kQuads x kLanes threads, each with four neighboring
// channels and every kLanes-th row of its chunk. So a warp reads whole lines of memory, and what belongs to a channel
// stays in registers. Only for *_cuda.cu files of batch_norm.
#pragma once

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/batch_norm/batch_norm_chunks.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/common/views.h"

namespace simclr::batch_norm {

inline constexpr int kQuads = kTileChannels / kFour;
inline constexpr int kLanes = 32;

// NHWC seen as [shards*groups, rows, padded].
struct Maps {
  int64_t rows = 0, padded = 0, chunk_rows = 0;
  int groups = 1;
};

// What a thread has: channels c..c+3 of rows first, first + kLanes, ... below end; none when c is beyond the maps.
struct Share {
  int64_t part;  // shard * groups + group
  int64_t c, first, end;
  int64_t base;  // of channel c in row 0 of the part
};

inline Maps maps_of(const ConstActivation& x, int groups) {
  return {.rows = x.samples / groups * x.height * x.width, .padded = x.padded_channels(), .groups = groups};
}

inline Grid grid_of(const Maps& maps, int64_t shards) {
  return {.blocks = dim3(blocks_of(ceil_div(maps.rows, maps.chunk_rows)), blocks_of(tiles_of(maps.padded)),
                         blocks_of(shards * maps.groups)),
          .threads = dim3(kQuads, kLanes)};
}

__device__ inline Share share_of(const Maps& maps) {
  Share share;
  share.part = blockIdx.z;
  share.c = int64_t{blockIdx.y} * kTileChannels + threadIdx.x * kFour;
  const int64_t begin = int64_t{blockIdx.x} * maps.chunk_rows;
  share.first = begin + threadIdx.y;
  share.end = begin + maps.chunk_rows < maps.rows ? begin + maps.chunk_rows : maps.rows;
  if (share.c >= maps.padded) share.first = share.end;
  share.base = share.part * maps.rows * maps.padded + share.c;
  return share;
}

// What y is made of before residual and ReLU: (x - mean)*gamma*inv_std + beta. No beta: zeros.
struct Affine {
  const float *mean, *inv_std, *gamma, *beta;
  int64_t channels;
};
inline Affine affine_of(const BatchNormStatistics& s, const float* gamma, const float* beta) {
  return {s.mean, s.inv_std, gamma, beta, s.channels};
}

// What backward reads. Without relu_y, y is computed from x again.
template <typename T>
struct Gradients {
  const T *grad_y, *relu_y, *x;
  bool relu;
};
template <typename T>
Gradients<T> gradients_of(const ConstActivation& grad_y, const ConstActivation& x, const BatchNormBackward& how) {
  return {grad_y.data.as<T>(), how.relu_y.as<T>(), x.data.as<T>(), how.has_relu()};
}

// An Affine of a thread's four channels; zero in padding channels. Forward and backward have to get the same y.
struct FourAffine {
  float mean[kFour] = {}, scale[kFour] = {}, beta[kFour] = {};
  __device__ float y(int k, float x) const { return (x - mean[k]) * scale[k] + beta[k]; }
};

// The thread has a share.
__device__ inline FourAffine four_of(const Affine& affine, const Maps& maps, const Share& share) {
  FourAffine four;
  for (int k = 0; k < kFour; ++k) {
    const int64_t c = share.c + k, at = share.part % maps.groups * maps.padded + c;
    four.mean[k] = affine.mean[at];
    four.scale[k] = c < affine.channels ? affine.gamma[c] * affine.inv_std[at] : 0.0F;
    four.beta[k] = affine.beta && c < affine.channels ? affine.beta[c] : 0.0F;
  }
  return four;
}

// g = grad_y where the output of forward is positive: as it is stored in relu_y or, where that is none, y computed again.
template <typename T>
__device__ void pass_relu(const T* relu_y, int64_t element, const FourAffine& of, const float (&x)[kFour],
                          float (&g)[kFour]) {
  float y[kFour];
  if (relu_y) load_four(relu_y + element, y);
  for (int k = 0; k < kFour; ++k) g[k] = (relu_y ? y[k] : of.y(k, x[k])) > 0.0F ? g[k] : 0.0F;
}

}  // namespace simclr::batch_norm
