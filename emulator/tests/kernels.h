// Kernels for the emulator's own tests. They live in a shared library of their own, as all emulated kernels do. Each
// function launches one kernel on a stream and returns what the launch returned.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace simclr::test {

// ---- right kernels ----

// y[i] += a * x[i], one thread for many elements.
cudaError_t axpy(float a, const float* x, float* y, size_t count, cudaStream_t stream);
// out[0] += sum of x: shuffles, shared memory, one atomic for each block. out is of T = float or double.
cudaError_t sum(const float* x, float* out, size_t count, cudaStream_t stream);
// y = softmax of each row of x [rows, columns], the row in dynamic shared memory.
cudaError_t softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream);
// c = a * b, [m, k] * [k, n], tiles in static shared memory, blocks of 16 x 16 threads.
cudaError_t tiled_product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream);
// Where each thread of the grid thinks it is: out[linear thread] = {block x,y,z, thread x,y,z}.
cudaError_t write_indices(int* out, dim3 blocks, dim3 threads, cudaStream_t stream);
// What the warp operations give for lane l, 12 numbers for each of `threads` threads; see the kernel.
constexpr int kWarpResults = 12;
cudaError_t warp_operations(int* out, int threads, cudaStream_t stream);
// Barriers with a result: out[0] count, out[1] and, out[2] or of (thread < limit).
cudaError_t counting_barriers(int* out, int threads, int limit, cudaStream_t stream);
// One of each atomic from 256 threads; see the kernel.
constexpr int kAtomicResults = 8;
cudaError_t atomics(int* out, double* total, cudaStream_t stream);
// The order in which threads and blocks begin: out[0] counts them, out[1 + n] is the n-th.
cudaError_t log_order(int* out, int blocks, int threads, cudaStream_t stream);
// Threads that do nothing.
cudaError_t do_nothing(int blocks, int threads, cudaStream_t stream);
// `rounds` barriers of all threads.
cudaError_t many_barriers(int rounds, int threads, cudaStream_t stream);

// out = a b + *c, and its transpose, by each of two warps: [2][16, 16]. a [16, k] and b [k, 16] lie by rows or by
// columns.
struct WarpProducts {
  const float *a, *b, *c;
  float *out, *transposed;
  bool a_by_columns, b_by_columns;
};
cudaError_t tf32_products(const WarpProducts& products, cudaStream_t stream);      // k = 8
cudaError_t bfloat16_products(const WarpProducts& products, cudaStream_t stream);  // k = 16
float rounded_to_tf32(float value);

// ---- broken kernels: each is a mistake that the emulator must show ----

// Forgets the barrier between writing and reading shared memory.
cudaError_t sum_without_barrier(const float* x, float* out, int count, cudaStream_t stream);
// Reuses shared memory for a second sum without a barrier between.
cudaError_t two_sums_one_buffer(const float* x, float* out, cudaStream_t stream);
// Lanes exchange through shared memory without __syncwarp.
cudaError_t reverse_without_syncwarp(float* out, cudaStream_t stream);
// Half of the block waits at one barrier, half at another.
cudaError_t divergent_barrier(float* out, cudaStream_t stream);
// Threads from `count` on return before the barrier.
cudaError_t return_before_barrier(float* out, int count, cudaStream_t stream);
// Half of a warp shuffles with the mask of all lanes.
cudaError_t mask_of_absent_lanes(float* out, cudaStream_t stream);
// A lane that calls with a mask without itself.
cudaError_t mask_without_oneself(float* out, cudaStream_t stream);
// Half of a warp shuffles, half votes.
cudaError_t different_collectives(int* out, cudaStream_t stream);
// Writes out[thread + offset] of 64 elements.
cudaError_t write_with_offset(float* out, int offset, cudaStream_t stream);
// The same in static shared, in dynamic shared memory.
cudaError_t write_shared_with_offset(float* out, int offset, cudaStream_t stream);
cudaError_t write_dynamic_with_offset(float* out, int offset, cudaStream_t stream);
// Reads a float4 at x + 1.
cudaError_t read_misaligned(const float* x, float* out, cudaStream_t stream);
// Copies shared memory of which half was written.
cudaError_t read_unwritten_shared(float* out, cudaStream_t stream);
// Four blocks add to out[0] without an atomic.
cudaError_t add_without_atomic(float* out, cudaStream_t stream);
// count * 2 as int.
cudaError_t overflow_index(float* out, int count, cudaStream_t stream);
// Recursion to the given depth, 1 KB each.
cudaError_t recurse(int* out, int depth, cudaStream_t stream);
cudaError_t call_trap(float* out, cudaStream_t stream);
// Dynamic shared memory of this size, with or without asking for it.
cudaError_t use_dynamic_shared(float* out, size_t bytes, bool ask, cudaStream_t stream);
// Any shape, for the limits of a launch.
cudaError_t launch_shape(float* out, dim3 blocks, dim3 threads, cudaStream_t stream);
// Half of a warp multiplies matrices; a fragment from x + offset.
cudaError_t product_of_half_a_warp(float* out, cudaStream_t stream);
cudaError_t load_misaligned_fragment(const float* x, float* out, int offset, int stride, cudaStream_t stream);
// A launch attribute, which the emulator does not know.
cudaError_t launch_with_attribute(float* out, cudaStream_t stream);

}  // namespace simclr::test
