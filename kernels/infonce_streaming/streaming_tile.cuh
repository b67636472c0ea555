// What a block of streaming InfoNCE does on CUDA with one tile of 64 anchors x 32 columns: brings e into shared memory,
// multiplies it, and knows which of its places are negatives. Which tiles, and what becomes of the similarities:
// streaming_*_cuda.cu. Only for *.cu files.
#pragma once

#include "kernels/infonce_streaming/streaming_task.cuh"

namespace simclr::detail {

// The dynamic shared memory of a block. Rows are 16 bytes longer than what they hold, so that the threads of a warp
// find their parts of 8 rows in different banks.
template <typename Products>
struct SharedTile {
  using Element = typename Products::Element;
  static constexpr int kPadding = 16 / static_cast<int>(sizeof(Element));
  static constexpr int kStride = kDepthChunk + kPadding;        // of rows and columns
  static constexpr int kSimilarityStride = kColumnTile + 4;     // floats
  static constexpr int kWeightStride = kColumnTile + kPadding;  // of weights
  static constexpr bool kWeightsInPlace = sizeof(Element) == sizeof(float);

  static constexpr size_t kRowBytes = kRowTile * kStride * sizeof(Element);
  static constexpr size_t kColumnBytes = kColumnTile * kStride * sizeof(Element);
  static constexpr size_t kSimilarityBytes = kRowTile * kSimilarityStride * sizeof(float);
  static constexpr size_t kWeightBytes = kWeightsInPlace ? 0 : kRowTile * kWeightStride * sizeof(Element);
  static constexpr size_t kBytes =
      kRowBytes + kColumnBytes + kSimilarityBytes + kWeightBytes + kRowTile * sizeof(int64_t);
  // At the end the first of it holds sums of [64, 128] floats.
  static constexpr int kSumStride = kDepthChunk + 4;
  static_assert(kRowBytes + kColumnBytes + kSimilarityBytes >= kRowTile * kSumStride * sizeof(float));
  static_assert(kBytes <= 99 * 1024, "what a block of every GPU from sm_80 on may have");

  Element* rows;        // [64][kStride] a chunk of the anchors' embeddings
  Element* columns;     // [32][kStride] the same of the columns'
  float* similarities;  // [64][kSimilarityStride]
  Element* weights;     // [64][kWeightStride]
  int64_t* global_row;  // [64] of the anchors; -1 beyond the last
  float* sums;          // [64][kSumStride], in the place of all but the last two

  __device__ SharedTile() {
    auto* start = dyn_shared<unsigned char>();
    rows = reinterpret_cast<Element*>(start);
    columns = reinterpret_cast<Element*>(start + kRowBytes);
    similarities = reinterpret_cast<float*>(start + kRowBytes + kColumnBytes);
    weights = reinterpret_cast<Element*>(start + kRowBytes + kColumnBytes + (kWeightsInPlace ? 0 : kSimilarityBytes));
    global_row = reinterpret_cast<int64_t*>(start + kRowBytes + kColumnBytes + kSimilarityBytes + kWeightBytes);
    sums = reinterpret_cast<float*>(start);
  }

  // Followed by a barrier before anybody reads.
  __device__ void find_rows(const StreamingTask& task) const {
    const int64_t anchor = static_cast<int64_t>(blockIdx.x) * kRowTile + threadIdx.x;
    if (threadIdx.x < kRowTile) global_row[threadIdx.x] = anchor < task.anchors ? task.rows.global_row(anchor) : -1;
  }

  static __device__ int chunk_width(const StreamingTask& task, int64_t chunk) {
    const int64_t left = task.rows.columns - chunk * kDepthChunk;
    return static_cast<int>(left < kDepthChunk ? left : kDepthChunk);
  }

  // Chunk `chunk` of the rows that row_of gives for 0..kCount-1, zero where there is none and up to a multiple of 16.
  template <int kCount, typename RowOf>
  static __device__ void load(const StreamingTask& task, int64_t chunk, RowOf row_of, Element* tile) {
    const int width = chunk_width(task, chunk), column = static_cast<int>(threadIdx.x) % kDepthChunk;
    if (column >= (width + kPart - 1) / kPart * kPart) return;
    constexpr int kRowsAtATime = kBlockThreads / kDepthChunk;
#pragma unroll 8
    for (int i = 0; i < kCount / kRowsAtATime; ++i) {
      const int r = i * kRowsAtATime + static_cast<int>(threadIdx.x) / kDepthChunk;
      const int64_t row = row_of(r);
      const bool there = row >= 0 && column < width;
      const float value = there ? task.rows.row(row)[chunk * kDepthChunk + column] : 0.0F;
      tile[r * kStride + column] = Products::to_element(value);
    }
  }
  __device__ void load_columns(const StreamingTask& task, int64_t tile, int64_t chunk) const {
    const int64_t first = tile * kColumnTile, keys = task.keys();
    load<kColumnTile>(
        task, chunk, [&](int r) { return first + r < keys ? first + r : -1; }, columns);
  }

  // similarities = rows columns^T of column tile `tile`, over all of C. Barriers before and after: what the tiles held
  // may still be read by others, what they hold then may be read by all. With one chunk rows are loaded for the first
  // tile alone, and columns stay.
  __device__ void multiply(const StreamingTask& task, int64_t tile, bool first) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, row = warp % kRowParts * kPart,
              column = warp / kRowParts * kPart;
    typename Products::Sum sum;
    wmma::fill_fragment(sum, 0.0F);
    for (int64_t chunk = 0; chunk < task.chunks; ++chunk) {
      __syncthreads();
      if (first || task.chunks > 1) {
        load<kRowTile>(
            task, chunk, [&](int r) { return global_row[r]; }, rows);
      }
      load_columns(task, tile, chunk);
      __syncthreads();
      const int width = chunk_width(task, chunk);
      for (int k = 0; k < width; k += Products::kDepth) {
        typename Products::template Operand<wmma::matrix_a, wmma::row_major> left;
        typename Products::template Operand<wmma::matrix_b, wmma::col_major> right;  // columns^T
        left.load(rows + row * kStride + k, kStride);
        right.load(columns + column * kStride + k, kStride);
        Products::multiply_add(left, right, sum);
      }
    }
    wmma::store_matrix_sync(similarities + row * kSimilarityStride + column, sum, kSimilarityStride,
                            wmma::mem_row_major);
    __syncthreads();
  }

  // sums += weights columns for the 16 x 64 places of [64, 128] that are this warp's: parts of 16 columns, every
  // second.
  template <typename Sums>
  __device__ void accumulate(int width, Sums& sums_of_warp) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, row = warp % kRowParts * kPart;
    for (int k = 0; k < kColumnTile; k += Products::kDepth) {
      typename Products::template Operand<wmma::matrix_a, wmma::row_major> left;
      left.load(weights + row * kWeightStride + k, kWeightStride);
#pragma unroll
      for (int part = 0; part < kPartsOfWarp; ++part) {
        const int column = column_of_part(part);
        if (column >= width) continue;
        typename Products::template Operand<wmma::matrix_b, wmma::row_major> right;
        right.load(columns + k * kStride + column, kStride);
        Products::multiply_add(left, right, sums_of_warp[part]);
      }
    }
  }
  static constexpr int kPartsOfWarp = kDepthChunk / kPart * kRowParts / (kBlockThreads / 32);  // 4
  static __device__ int column_of_part(int part) {
    return (2 * part + static_cast<int>(threadIdx.x) / 32 / kRowParts) * kPart;
  }
};

// A thread's part of a tile's row: of anchor `row`, the columns t, t + 4, t + 8 ... of tile `tile`.
struct RowPart {
  int row, thread;
  int64_t self, positive;  // global; -1: there is no such anchor

  template <typename Products>
  __device__ RowPart(const StreamingTask& task, const SharedTile<Products>& shared)
      : row(static_cast<int>(threadIdx.x) / kThreadsOfRow),
        thread(static_cast<int>(threadIdx.x) % kThreadsOfRow),
        self(shared.global_row[row]),
        positive(self < 0 ? -1 : task.rows.positive_of(self)) {}

  __device__ int column(int i) const { return i * kThreadsOfRow + thread; }
  __device__ bool is_negative(const StreamingTask& task, int64_t key) const {
    return self >= 0 && key < task.keys() && key != self && key != positive;
  }
};

}  // namespace simclr::detail
