// How streaming InfoNCE on CUDA cuts a problem, and what is where in its workspace. No arithmetic of the loss.
//
// A block owns 64 anchors of the rank and meets a span of columns tile by tile, 32 columns each. Tiles and spans are
// a function of the global batch alone, and what spans give is added up in their order: the bits of a row depend
// neither on the rows next to it, nor on how many of them the rank owns, nor on the GPU. Spans are there because the
// rows of one rank alone do not fill a GPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/views.h"
#include "kernels/infonce_common/infonce_problem.h"

namespace simclr::detail {

inline constexpr int kRowTile = 64;      // anchors of a block
inline constexpr int kColumnTile = 32;   // columns that it meets at a time
inline constexpr int kDepthChunk = 128;  // columns of e in shared memory

struct StreamingCudaPlan {
  static constexpr int64_t kMostSpans = 8;    // partial gradients that the workspace holds
  static constexpr int64_t kFewestTiles = 4;  // of a span

  int64_t tiles;       // of all 2B columns
  int64_t span_tiles;  // of a span; the last has what is left
  int64_t spans;
  int64_t row_tiles;  // of the rank's anchors
  int64_t chunks;     // of C

  // Bytes from the start of the workspace, each at a multiple of 256. Forward and backward use the same memory.
  int64_t row_sums;      // forward: double [spans][anchors]
  int64_t row_tops;      // forward: float [spans][anchors]
  int64_t denominators;  // backward: float [2][2B]
  int64_t gradients;     // backward: float [spans][anchors, C]
  int64_t bytes;

  explicit StreamingCudaPlan(const InfoNceProblem& p)
      : tiles(blocks_of(p.keys(), kColumnTile)),
        span_tiles(std::max(blocks_of(tiles, kMostSpans), kFewestTiles)),
        spans(blocks_of(tiles, span_tiles)),
        row_tiles(blocks_of(p.anchors(), kRowTile)),
        chunks(blocks_of(p.columns, kDepthChunk)),
        row_sums(0),
        row_tops(round_up(spans * p.anchors() * int64_t{sizeof(double)}, 256)),
        denominators(0),
        gradients(round_up(2 * p.keys() * int64_t{sizeof(float)}, 256)),
        bytes(std::max(row_tops + spans * p.anchors() * int64_t{sizeof(float)},
                       gradients + spans * p.anchors() * p.columns * int64_t{sizeof(float)})) {}

 private:
  static constexpr int64_t blocks_of(int64_t count, int64_t block) { return (count + block - 1) / block; }
};

}  // namespace simclr::detail
