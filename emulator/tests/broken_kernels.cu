// Kernels with one mistake each; broken_kernel_test.cpp shows how the emulator reports it. Used for nothing else.
#include "dynamic_shared.cuh"
#include "emulator/tests/kernels.h"
#include "emulator/tests/launch.h"

namespace simclr::test {

namespace {

constexpr unsigned kAllLanes = 0xffffffffU;

__global__ void sum_without_barrier_kernel(const float* x, float* out, int count) {
  __shared__ float parts[64];
  const int t = static_cast<int>(threadIdx.x);
  parts[t] = t < count ? x[t] : 0.0F;
  // missing: __syncthreads();
  if (t == 0) {
    float sum = 0.0F;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += parts[i];
    *out = sum;
  }
}

// Right but for what it leaves behind: the next call may write to parts before all threads have read.
__device__ float sum_and_leave(float v) {
  __shared__ float parts[2];
  for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_xor_sync(kAllLanes, v, lanes);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  return parts[0] + parts[1];
}

__global__ void two_sums_kernel(const float* x, float* out) {
  const float sum = sum_and_leave(x[threadIdx.x]);
  // missing: __syncthreads();
  const float squares = sum_and_leave(x[threadIdx.x] * x[threadIdx.x]);
  out[threadIdx.x] = sum + squares;
}

__global__ void reverse_kernel(float* out) {
  __shared__ float values[32];
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  // missing: __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}

__global__ void divergent_kernel(float* out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1.0F;
}

__global__ void return_kernel(float* out, int count) {
  if (static_cast<int>(threadIdx.x) >= count) return;
  __syncthreads();
  out[threadIdx.x] = 1.0F;
}

__global__ void absent_lanes_kernel(float* out) {
  float v = 1.0F;
  if (threadIdx.x < 16) v = __shfl_down_sync(kAllLanes, v, 1);
  out[threadIdx.x] = v;
}

__global__ void without_oneself_kernel(float* out) {
  out[threadIdx.x] = __shfl_sync(0x1U, 1.0F, 0);
}

__global__ void different_kernel(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_sync(kAllLanes, 1, 0);
  } else {
    out[threadIdx.x] = __any_sync(kAllLanes, 1);
  }
}

__global__ void offset_kernel(float* out, int offset) {
  out[static_cast<int>(threadIdx.x) + offset] = 1.0F;
}

__global__ void shared_offset_kernel(float* out, int offset) {
  __shared__ float values[64];
  values[static_cast<int>(threadIdx.x) + offset] = 1.0F;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void dynamic_offset_kernel(float* out, int offset) {
  float* values = dyn_shared<float>();
  values[static_cast<int>(threadIdx.x) + offset] = 1.0F;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void misaligned_kernel(const float* x, float* out) {
  const float4 v = *reinterpret_cast<const float4*>(x + 1);
  out[threadIdx.x] = v.x;
}

__global__ void unwritten_kernel(float* out) {
  __shared__ float values[64];
  if (threadIdx.x < 32) values[threadIdx.x] = 1.0F;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void add_kernel(float* out) {
  if (threadIdx.x == 0) out[0] += 1.0F;
}

__global__ void shape_kernel(float*) {}

__global__ void index_kernel(float* out, int count) {
  const int doubled = count * 2;
  out[threadIdx.x] = static_cast<float>(doubled);
}

__device__ int descend(int depth) {
  volatile char room[1024];
  room[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : descend(depth - 1) + room[0];
}

__global__ void recurse_kernel(int* out, int depth) {
  out[threadIdx.x] = descend(depth);
}

__global__ void trap_kernel(float* out) {
  if (threadIdx.x == 5) __trap();
  out[threadIdx.x] = 1.0F;
}

__global__ void dynamic_kernel(float* out) {
  dyn_shared<float>()[threadIdx.x] = 1.0F;
  out[threadIdx.x] = dyn_shared<float>()[threadIdx.x];
}

}  // namespace

cudaError_t sum_without_barrier(const float* x, float* out, int count, cudaStream_t stream) {
  return launch({1, 64}, stream, sum_without_barrier_kernel, x, out, count);
}
cudaError_t two_sums_one_buffer(const float* x, float* out, cudaStream_t stream) {
  return launch({1, 64}, stream, two_sums_kernel, x, out);
}
cudaError_t reverse_without_syncwarp(float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, reverse_kernel, out);
}
cudaError_t divergent_barrier(float* out, cudaStream_t stream) {
  return launch({1, 64}, stream, divergent_kernel, out);
}
cudaError_t return_before_barrier(float* out, int count, cudaStream_t stream) {
  return launch({1, 64}, stream, return_kernel, out, count);
}
cudaError_t mask_of_absent_lanes(float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, absent_lanes_kernel, out);
}
cudaError_t mask_without_oneself(float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, without_oneself_kernel, out);
}
cudaError_t different_collectives(int* out, cudaStream_t stream) {
  return launch({1, 32}, stream, different_kernel, out);
}
cudaError_t write_with_offset(float* out, int offset, cudaStream_t stream) {
  return launch({1, 64}, stream, offset_kernel, out, offset);
}
cudaError_t write_shared_with_offset(float* out, int offset, cudaStream_t stream) {
  return launch({1, 64}, stream, shared_offset_kernel, out, offset);
}
cudaError_t write_dynamic_with_offset(float* out, int offset, cudaStream_t stream) {
  return launch({1, 64, 64 * sizeof(float)}, stream, dynamic_offset_kernel, out, offset);
}
cudaError_t read_misaligned(const float* x, float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, misaligned_kernel, x, out);
}
cudaError_t read_unwritten_shared(float* out, cudaStream_t stream) {
  return launch({1, 64}, stream, unwritten_kernel, out);
}
cudaError_t add_without_atomic(float* out, cudaStream_t stream) {
  return launch({4, 32}, stream, add_kernel, out);
}
cudaError_t overflow_index(float* out, int count, cudaStream_t stream) {
  return launch({1, 32}, stream, index_kernel, out, count);
}
cudaError_t recurse(int* out, int depth, cudaStream_t stream) {
  return launch({1, 32}, stream, recurse_kernel, out, depth);
}
cudaError_t call_trap(float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, trap_kernel, out);
}
cudaError_t use_dynamic_shared(float* out, size_t bytes, bool ask, cudaStream_t stream) {
  if (ask) {
    const cudaError_t error =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(dynamic_kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes));
    if (error != cudaSuccess) return error;
  }
  return launch({1, 32, bytes}, stream, dynamic_kernel, out);
}
cudaError_t launch_shape(float* out, dim3 blocks, dim3 threads, cudaStream_t stream) {
  return launch({blocks, threads}, stream, shape_kernel, out);
}
cudaError_t launch_with_attribute(float* out, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = 32;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, shape_kernel, out);
}

}  // namespace simclr::test
