// CUDA: one warp a row. A lane takes every 32nd column and the lanes are added in tree order, so that a row's bits
// depend on the row alone.
#include <cmath>

#include "kernels/common/block_sum.cuh"
#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/l2_normalize/l2_normalize.h"

namespace simclr::detail {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp each

// The row of this warp. Warps past the last row return as a whole.
__device__ int64_t row_of_warp() {
  return static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / warpSize;
}

Grid grid_of(int64_t rows) {
  return {.blocks = blocks_of(ceil_div(rows, kRowsPerBlock)), .threads = kRowsPerBlock * 32};
}

// z and e may be the same memory: a lane writes the columns that it alone has read.
template <typename T>
__global__ void forward_kernel(const T* z, int64_t z_stride, int64_t rows, int64_t cols, float* e, int64_t e_stride,
                               double* norms) {
  const int64_t row = row_of_warp();
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  const T* z_row = z + row * z_stride;  // [C]
  float* e_row = e + row * e_stride;    // [C]
  double square = 0;
  for (int64_t c = lane; c < cols; c += warpSize) {
    const double value = to_float(z_row[c]);
    square += value * value;  // the product of two floats is exact in double
  }
  const double norm = sqrt(warp_reduce(square, Add()));
  const double divisor = norm <= kNormFloor ? kNormFloor : norm;  // a NaN norm stays NaN
  for (int64_t c = lane; c < cols; c += warpSize) e_row[c] = static_cast<float>(to_float(z_row[c]) / divisor);
  for (int64_t c = cols + lane; c < e_stride; c += warpSize) e_row[c] = 0.0F;
  if (lane == 0) norms[row] = norm;
}

// forward: e = z / norm;  de/dz = (I - e e^T) / norm. grad_e and grad_z may be the same memory, as above.
template <typename T>
__global__ void backward_kernel(const float* e, int64_t e_stride, const double* norms, const float* grad_e,
                                int64_t grad_e_stride, int64_t rows, int64_t cols, T* grad_z, int64_t grad_z_stride) {
  const int64_t row = row_of_warp();
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  const float* e_row = e + row * e_stride;            // [C]
  const float* g_row = grad_e + row * grad_e_stride;  // [C]
  T* out = grad_z + row * grad_z_stride;              // [C]
  double partial = 0;
  for (int64_t c = lane; c < cols; c += warpSize) partial += static_cast<double>(e_row[c]) * g_row[c];
  const double radial = warp_reduce(partial, Add());
  const double norm = norms[row];
  for (int64_t c = lane; c < cols; c += warpSize) {
    out[c] = to_storage<T>(norm <= kNormFloor ? 0.0F : static_cast<float>((g_row[c] - e_row[c] * radial) / norm));
  }
  for (int64_t c = cols + lane; c < grad_z_stride; c += warpSize) out[c] = to_storage<T>(0.0F);
}

}  // namespace

void l2_normalize_forward(const CudaExec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms) {
  if (z.rows == 0) return;
  with_storage(z.type(), [&]<typename T>(T) {
    launch(exec, "l2_normalize_forward", grid_of(z.rows), forward_kernel<T>, z.data.as<T>(), z.stride, z.rows, z.cols,
           e.data, e.stride, norms.data());
  });
}

void l2_normalize_backward(const CudaExec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z) {
  if (e.rows == 0) return;
  with_storage(grad_z.type(), [&]<typename T>(T) {
    launch(exec, "l2_normalize_backward", grid_of(e.rows), backward_kernel<T>, e.data, e.stride, norms.data(),
           grad_e.data, grad_e.stride, e.rows, e.cols, grad_z.data.as<T>(), grad_z.stride);
  });
}

}  // namespace simclr::detail
