// Kernels that are right: what they compute is checked in every order of threads, streams and with all sanitizers.
#include <algorithm>
#include <cfloat>

#include "dynamic_shared.cuh"
#include "emulator/tests/kernels.h"
#include "emulator/tests/launch.h"

namespace simclr::test {

namespace {

constexpr unsigned kAllLanes = 0xffffffffU;

__global__ void axpy_kernel(float a, const float* __restrict__ x, float* __restrict__ y, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) y[i] += a * x[i];
}

__device__ float warp_sum(float v) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_xor_sync(kAllLanes, v, lanes);
  return v;
}

__device__ float block_sum(float v) {
  __shared__ float parts[32];
  v = warp_sum(v);
  __syncthreads();  // parts of a former call have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0F;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += parts[w];
  return sum;
}

__global__ void __launch_bounds__(256) sum_kernel(const float* x, float* out, size_t count) {
  float v = 0.0F;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) v += x[i];
  v = block_sum(v);
  if (threadIdx.x == 0) atomicAdd(out, v);
}

__global__ void softmax_kernel(const float* x, float* y, int columns) {
  float* row = dyn_shared<float>();
  __shared__ float maxima[8];
  const float* from = x + static_cast<size_t>(blockIdx.x) * columns;
  float* to = y + static_cast<size_t>(blockIdx.x) * columns;
  float top = -FLT_MAX;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x)) {
    row[c] = from[c];
    top = max(top, row[c]);
  }
  for (unsigned lanes = 16; lanes > 0; lanes /= 2) top = max(top, __shfl_down_sync(kAllLanes, top, lanes));
  if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = top;
  __syncthreads();
  top = maxima[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) top = max(top, maxima[w]);
  float sum = 0.0F;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x)) {
    row[c] = __expf(row[c] - top);
    sum += row[c];
  }
  sum = block_sum(sum);
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x)) to[c] = row[c] / sum;
}

template <int kTile>
__global__ void product_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile + 1];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + ty;
  const int column = static_cast<int>(blockIdx.x) * kTile + tx;
  float sum = 0.0F;
  for (int t = 0; t < k; t += kTile) {
    tile_a[ty][tx] = row < m && t + tx < k ? a[static_cast<size_t>(row) * k + t + tx] : 0.0F;
    tile_b[ty][tx] = column < n && t + ty < k ? b[static_cast<size_t>(t + ty) * n + column] : 0.0F;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<size_t>(row) * n + column] = sum;
}

__global__ void indices_kernel(int* out) {
  const unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned* place = reinterpret_cast<unsigned*>(out) + 6 * (b * (blockDim.x * blockDim.y * blockDim.z) + t);
  place[0] = blockIdx.x;
  place[1] = blockIdx.y;
  place[2] = blockIdx.z;
  place[3] = threadIdx.x;
  place[4] = threadIdx.y;
  place[5] = threadIdx.z;
}

__global__ void warp_kernel(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  const int v = 100 + t;
  int* r = out + kWarpResults * t;
  r[0] = __shfl_sync(kAllLanes, v, 3);
  r[1] = __shfl_sync(kAllLanes, v, 9, 8);  // lane 9 % 8 of each group of 8
  r[2] = __shfl_up_sync(kAllLanes, v, 1);
  r[3] = __shfl_up_sync(kAllLanes, v, 2, 8);
  r[4] = __shfl_down_sync(kAllLanes, v, 1);
  r[5] = __shfl_down_sync(kAllLanes, v, 2, 8);
  r[6] = __shfl_xor_sync(kAllLanes, v, 1);
  r[7] = __shfl_xor_sync(kAllLanes, v, 8, 8);  // the lane of another group: to a later one its own value
  r[8] = static_cast<int>(__ballot_sync(kAllLanes, t % 3 == 0));
  r[9] = __any_sync(kAllLanes, t % 32 == 7);
  r[10] = __all_sync(kAllLanes, t % 32 != 7);
  r[11] = -1;
  if (t % 2 == 0) r[11] = __shfl_xor_sync(0x55555555U, v, 2);  // the even lanes alone
}

__global__ void counting_kernel(int* out, int limit) {
  const int below = static_cast<int>(threadIdx.x) < limit ? 7 : 0;  // any number but 0 counts once
  const int count = __syncthreads_count(below);
  const int all = __syncthreads_and(below);
  const int any = __syncthreads_or(below);
  if (threadIdx.x == blockDim.x - 1) {
    out[0] = count;
    out[1] = all;
    out[2] = any;
  }
}

__global__ void atomics_kernel(int* out, double* total) {
  const int t = static_cast<int>(threadIdx.x);
  atomicAdd(&out[0], t);
  atomicSub(&out[1], 1);
  atomicMax(&out[2], t);
  atomicMin(&out[3], t);
  atomicOr(reinterpret_cast<unsigned*>(&out[4]), 1U << (t % 8));
  atomicAnd(reinterpret_cast<unsigned*>(&out[5]), ~(1U << (t % 8)));
  if (atomicCAS(&out[6], 0, t + 1) == 0) atomicExch(&out[7], t + 1);  // one thread gets through
  atomicAdd(total, 0.25);
}

__global__ void order_kernel(int* out) {
  const int n = atomicAdd(&out[0], 1);
  out[1 + n] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void nothing_kernel() {}

__global__ void barriers_kernel(int rounds) {
  for (int i = 0; i < rounds; ++i) __syncthreads();
}

unsigned blocks_for(size_t count, size_t most) {
  return static_cast<unsigned>(std::clamp<size_t>((count + 255) / 256, 1, most));
}

}  // namespace

cudaError_t axpy(float a, const float* x, float* y, size_t count, cudaStream_t stream) {
  return launch({blocks_for(count, 1024), 256}, stream, axpy_kernel, a, x, y, count);
}
cudaError_t sum(const float* x, float* out, size_t count, cudaStream_t stream) {
  return launch({blocks_for(count, 256), 256}, stream, sum_kernel, x, out, count);
}
cudaError_t softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  return launch({static_cast<unsigned>(rows), 256, columns * sizeof(float)}, stream, softmax_kernel, x, y, columns);
}
cudaError_t tiled_product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(n + 15) / 16, static_cast<unsigned>(m + 15) / 16);
  return launch({blocks, dim3(16, 16)}, stream, product_kernel<16>, a, b, c, m, n, k);
}
cudaError_t write_indices(int* out, dim3 blocks, dim3 threads, cudaStream_t stream) {
  return launch({blocks, threads}, stream, indices_kernel, out);
}
cudaError_t warp_operations(int* out, int threads, cudaStream_t stream) {
  return launch({1, static_cast<unsigned>(threads)}, stream, warp_kernel, out);
}
cudaError_t counting_barriers(int* out, int threads, int limit, cudaStream_t stream) {
  return launch({1, static_cast<unsigned>(threads)}, stream, counting_kernel, out, limit);
}
cudaError_t atomics(int* out, double* total, cudaStream_t stream) {
  return launch({1, 256}, stream, atomics_kernel, out, total);
}
cudaError_t log_order(int* out, int blocks, int threads, cudaStream_t stream) {
  return launch({static_cast<unsigned>(blocks), static_cast<unsigned>(threads)}, stream, order_kernel, out);
}
cudaError_t do_nothing(int blocks, int threads, cudaStream_t stream) {
  return launch({static_cast<unsigned>(blocks), static_cast<unsigned>(threads)}, stream, nothing_kernel);
}
cudaError_t many_barriers(int rounds, int threads, cudaStream_t stream) {
  return launch({1, static_cast<unsigned>(threads)}, stream, barriers_kernel, rounds);
}

}  // namespace simclr::test
