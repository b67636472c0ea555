// CUDA: one element a thread.
#include "kernels/common/launch.cuh"
#include "kernels/row_order/row_order.h"

namespace simclr::detail {
namespace {

// Where row v*n + i of shard s, the given row by shards, has this index in the global order: v*B + s*n + i.
__device__ int64_t global_row_of(int64_t row, int64_t images, int64_t batch) {
  const int64_t part = row / images, shard = part / 2, view = part % 2;
  return view * batch + shard * images + row % images;
}

// f(row, column) for every element of [rows, cols].
template <typename F>
__device__ void for_each_element(int64_t rows, int64_t cols, F f) {
  const int64_t step = thread_count();
  for (int64_t k = thread_index(); k < rows * cols; k += step) {
    f(k / cols, k % cols);
  }
}

// Rows of `cols` floats, some elements apart.
template <bool kToGlobal>
__global__ void move_rows_kernel(const float* from, int64_t from_stride, int64_t rows, int64_t cols, int64_t images,
                                 int64_t batch, float* to, int64_t to_stride) {
  for_each_element(rows, cols, [&](int64_t row, int64_t c) {
    const int64_t global = global_row_of(row, images, batch);  // row: by shards
    to[(kToGlobal ? global : row) * to_stride + c] = from[(kToGlobal ? row : global) * from_stride + c];
  });
}

__global__ void add_rows_kernel(const float* other, int64_t other_stride, int64_t rows, int64_t cols, float* sum,
                                int64_t sum_stride) {
  for_each_element(rows, cols,
                   [&](int64_t row, int64_t c) { sum[row * sum_stride + c] += other[row * other_stride + c]; });
}

template <bool kToGlobal>
void move_rows(const CudaExec& exec, const char* name, const ConstFloatMatrix& from, int64_t shards,
               const FloatMatrix& to) {
  if (from.rows == 0) return;
  launch(exec, name, elementwise_grid(from.rows * from.cols), move_rows_kernel<kToGlobal>, from.data, from.stride,
         from.rows, from.cols, from.rows / (2 * shards), from.rows / 2, to.data, to.stride);
}

}  // namespace

void shards_to_global_order(const CudaExec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global) {
  move_rows<true>(exec, "shards_to_global_order", by_shard, shards, global);
}

void global_to_shard_order(const CudaExec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard) {
  move_rows<false>(exec, "global_to_shard_order", global, shards, by_shard);
}

void add_rows(const CudaExec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum) {
  if (sum.rows == 0) return;
  launch(exec, "add_rows", elementwise_grid(sum.rows * sum.cols), add_rows_kernel, other.data, other.stride, sum.rows,
         sum.cols, sum.data, sum.stride);
}

}  // namespace simclr::detail
