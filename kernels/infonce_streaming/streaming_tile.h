// The arithmetic of one 128 x 128 tile of similarities on the CPU, compiled for several instruction sets. What the loss
// is made of: infonce_streaming.h; in which order tiles are visited: streaming_plan.h.
//
// Bits: every similarity is ONE chain of products over the columns of e, whatever block it is computed in, so s_ij and
// s_ji have the same bits. The sum of a row over a tile is 16 lanes (column mod 16), each in ascending order, then a
// tree over the lanes; the sums of columns are made in the same order over rows, so that a tile read as its own
// transpose gives the same bits.
#pragma once

#include <cstdint>
#include <span>

namespace simclr::detail {

inline constexpr int64_t kTile = 128;          // rows and columns of a tile
inline constexpr int64_t kSumLanes = 16;       // of the order of a sum
inline constexpr int64_t kPanel = 32;          // columns of a packed panel
inline constexpr int64_t kRowStep = 8;         // ranges of rows are multiples of it
inline constexpr int64_t kColumnPadding = 32;  // the width of padded embeddings is a multiple of it

struct StreamingTile {
  const float* rows = nullptr;              // [128, stride] embeddings of the tile's rows
  const float* panels = nullptr;            // [4][depth][32] embeddings of the tile's columns, packed
  int64_t stride = 0, depth = 0;            // depth = C
  int64_t first_row = 0, first_column = 0;  // global
  int64_t begin = 0, end = kTile;           // rows wanted, multiples of kRowStep
  int64_t batch = 0;                        // B: what is a negative follows from it
  float scale = 0, scale_low = 0;           // 1/tau as the sum of two floats
};

// E_ij = exp((s_ij - 1) / tau) for negatives, exactly 0 for j = i, j = pos(i) and beyond 2B.
struct TileKernels {
  const char* name;
  // row_sums[i] = sum_j E_ij for i in [begin, end); column_sums[j] = sum_i E_ij unless null (then all rows are wanted).
  void (*sum_exponentials)(const StreamingTile& tile, float* row_sums, float* column_sums);
  // out[i][j] = E_ij (of_rows[i] + of_columns[j])                                                    out [128, 128]
  void (*weights)(const StreamingTile& tile, const float* of_rows, const float* of_columns, float* out);
  // out[i][j] = s_ij for negatives, else -infinity                                                   out [128, 128]
  void (*similarities)(const StreamingTile& tile, float* out);
  // sums[i] += sum_j op(w)_ij e_j for i in [begin, end); the sum over j is made first.   e, sums [128, stride], w [128,
  // 128]
  void (*accumulate)(const float* w, bool transpose, const float* e, int64_t stride, int64_t begin, int64_t end,
                     float* sums);
};

// All that this processor can run, the fastest first; never empty.
std::span<const TileKernels> tile_kernels();

}  // namespace simclr::detail
