// Included once per instruction set by streaming_tile_cpu.cpp, inside a namespace, with SIMCLR_TILE_TARGET (the
// attribute that every function needs; lambdas and templates would lose it), kVector (floats of a register) and
// kBlockRows (so that kBlockRows * 2 accumulators fit the registers). No guard against a second inclusion, on purpose.

using Vector [[gnu::vector_size(kVector * sizeof(float))]] = float;
constexpr int64_t kBlockColumns = 2 * kVector;
constexpr int64_t kBlock = kBlockRows * kBlockColumns;

// out [kBlockRows, kBlockColumns] = sum over k of a[row * a_row + k * a_step] * b[k * b_step + column], k ascending.
SIMCLR_TILE_TARGET [[gnu::always_inline]] inline void multiply_block(const float* a, int64_t a_row, int64_t a_step,
                                                                     const float* b, int64_t b_step, int64_t depth,
                                                                     float* out) {
  Vector sum[kBlockRows][2];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kBlockRows; ++r) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v) sum[r][v] = Vector{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vector right[2];
    std::memcpy(&right[0], b + k * b_step, sizeof right[0]);  // one by one: a register each
    std::memcpy(&right[1], b + k * b_step + kVector, sizeof right[1]);
#pragma GCC unroll 16
    for (int64_t r = 0; r < kBlockRows; ++r) {
      const float left = a[r * a_row + k * a_step];
#pragma GCC unroll 2
      for (int64_t v = 0; v < 2; ++v) sum[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 16
  for (int64_t r = 0; r < kBlockRows; ++r) {
    std::memcpy(out + r * kBlockColumns, &sum[r][0], sizeof(Vector));
    std::memcpy(out + r * kBlockColumns + kVector, &sum[r][1], sizeof(Vector));
  }
}

// Where j is not a negative of i: `value`. i and j are global.
SIMCLR_TILE_TARGET inline void mask_block(const StreamingTile& tile, int64_t i0, int64_t j0, float value,
                                          float* block) {
  const int64_t keys = 2 * tile.batch, low = j0 - i0 - (kBlockRows - 1),
                high = j0 - i0 + kBlockColumns - 1;  // of j - i
  const bool has_self = low <= 0 && 0 <= high;
  const bool has_positive = (low <= tile.batch && tile.batch <= high) || (low <= -tile.batch && -tile.batch <= high);
  if (!has_self && !has_positive && i0 + kBlockRows <= keys && j0 + kBlockColumns <= keys) return;
  for (int64_t r = 0; r < kBlockRows; ++r) {
    for (int64_t c = 0; c < kBlockColumns; ++c) {
      const int64_t i = i0 + r, j = j0 + c, distance = j - i;
      const bool is_negative =
          distance != 0 && distance != tile.batch && distance != -tile.batch && i < keys && j < keys;
      if (!is_negative) block[r * kBlockColumns + c] = value;
    }
  }
}

SIMCLR_TILE_TARGET [[gnu::always_inline]] inline void similarity_block(const StreamingTile& tile, int64_t i, int64_t j,
                                                                       float* block) {
  const float* panel = tile.panels + j / kPanel * tile.depth * kPanel + j % kPanel;
  multiply_block(tile.rows + i * tile.stride, tile.stride, 1, panel, kPanel, tile.depth, block);
}

// E of the block of rows i.. and columns j.. of the tile.
SIMCLR_TILE_TARGET [[gnu::always_inline]] inline void exponential_block(const StreamingTile& tile, int64_t i, int64_t j,
                                                                        float* block) {
  similarity_block(tile, i, j, block);
  for (int64_t x = 0; x < kBlock; ++x) {
    const float below = block[x] - 1.0F;
    block[x] = exp_nonpositive(below * tile.scale + below * tile.scale_low);
  }
  mask_block(tile, tile.first_row + i, tile.first_column + j, 0.0F, block);
}

SIMCLR_TILE_TARGET void sum_exponentials(const StreamingTile& tile, float* row_sums, float* column_sums) {
  constexpr int64_t kGroup = kBlockColumns < kSumLanes ? kBlockColumns : kSumLanes;
  alignas(64) float block[kBlock];
  alignas(64) float row_lanes[kTile][kSumLanes] = {};  // of each row: column mod 16
  for (int64_t j = 0; j < kTile; j += kBlockColumns) {
    alignas(64) float column_lanes[kSumLanes][kBlockColumns] = {};  // row mod 16
    for (int64_t i = tile.begin; i < tile.end; i += kBlockRows) {
      exponential_block(tile, i, j, block);
      for (int64_t r = 0; r < kBlockRows; ++r) {
        for (int64_t c = 0; c < kBlockColumns; c += kGroup) {
          float* lanes = row_lanes[i + r] + (j + c) % kSumLanes;
          for (int64_t l = 0; l < kGroup; ++l) lanes[l] += block[r * kBlockColumns + c + l];
        }
      }
      if (column_sums == nullptr) continue;
      for (int64_t r = 0; r < kBlockRows; ++r) {
        float* lanes = column_lanes[(i + r) % kSumLanes];
        for (int64_t c = 0; c < kBlockColumns; ++c) lanes[c] += block[r * kBlockColumns + c];
      }
    }
    if (column_sums == nullptr) continue;
    for (int64_t step = kSumLanes / 2; step > 0; step /= 2) {
      for (int64_t l = 0; l < step; ++l) {
        for (int64_t c = 0; c < kBlockColumns; ++c) column_lanes[l][c] += column_lanes[l + step][c];
      }
    }
    std::memcpy(column_sums + j, column_lanes[0], sizeof column_lanes[0]);
  }
  for (int64_t i = tile.begin; i < tile.end; ++i) {
    for (int64_t step = kSumLanes / 2; step > 0; step /= 2) {
      for (int64_t l = 0; l < step; ++l) row_lanes[i][l] += row_lanes[i][l + step];
    }
    row_sums[i] = row_lanes[i][0];
  }
}

SIMCLR_TILE_TARGET void weights(const StreamingTile& tile, const float* of_rows, const float* of_columns, float* out) {
  alignas(64) float block[kBlock];
  for (int64_t j = 0; j < kTile; j += kBlockColumns) {
    for (int64_t i = tile.begin; i < tile.end; i += kBlockRows) {
      exponential_block(tile, i, j, block);
      for (int64_t r = 0; r < kBlockRows; ++r) {
        const float of_row = of_rows[i + r];
        float* row = out + (i + r) * kTile + j;
        for (int64_t c = 0; c < kBlockColumns; ++c)
          row[c] = block[r * kBlockColumns + c] * (of_row + of_columns[j + c]);
      }
    }
  }
}

SIMCLR_TILE_TARGET void similarities(const StreamingTile& tile, float* out) {
  alignas(64) float block[kBlock];
  for (int64_t j = 0; j < kTile; j += kBlockColumns) {
    for (int64_t i = tile.begin; i < tile.end; i += kBlockRows) {
      similarity_block(tile, i, j, block);
      mask_block(tile, tile.first_row + i, tile.first_column + j, -INFINITY, block);
      for (int64_t r = 0; r < kBlockRows; ++r)
        std::memcpy(out + (i + r) * kTile + j, block + r * kBlockColumns, kBlockColumns * sizeof(float));
    }
  }
}

SIMCLR_TILE_TARGET void accumulate(const float* w, bool transpose, const float* e, int64_t stride, int64_t begin,
                                   int64_t end, float* sums) {
  alignas(64) float block[kBlock];
  for (int64_t column = 0; column < stride; column += kBlockColumns) {
    for (int64_t i = begin; i < end; i += kBlockRows) {
      if (transpose) {
        multiply_block(w + i, 1, kTile, e + column, stride, kTile, block);
      } else {
        multiply_block(w + i * kTile, kTile, 1, e + column, stride, kTile, block);
      }
      for (int64_t r = 0; r < kBlockRows; ++r) {
        float* row = sums + (i + r) * stride + column;
        for (int64_t c = 0; c < kBlockColumns; ++c) row[c] += block[r * kBlockColumns + c];
      }
    }
  }
}
