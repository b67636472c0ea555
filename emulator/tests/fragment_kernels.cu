// Matrix products of a warp: right ones, whose results are checked, and two mistakes.
#include <mma.h>

#include "dynamic_shared.cuh"
#include "emulator/tests/kernels.h"
#include "emulator/tests/launch.h"

namespace simclr::test {

namespace {

namespace wmma = nvcuda::wmma;

// T: what fragments are of; Element: the type in memory.
template <int k, typename T, typename Element, typename LayoutA, typename LayoutB>
__global__ void product_of_warps_kernel(const float* a, const float* b, const float* c, float* out, float* transposed) {
  auto* shared = dyn_shared<Element>();  // a, b
  for (int i = static_cast<int>(threadIdx.x); i < 16 * k; i += static_cast<int>(blockDim.x)) {
    shared[i] = static_cast<Element>(a[i]);
    shared[16 * k + i] = static_cast<Element>(b[i]);
  }
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, k, T, LayoutA> left;
  wmma::fragment<wmma::matrix_b, 16, 16, k, T, LayoutB> right;
  wmma::fragment<wmma::accumulator, 16, 16, k, float> sum;
  wmma::load_matrix_sync(left, shared, std::is_same_v<LayoutA, wmma::row_major> ? k : 16);
  wmma::load_matrix_sync(right, shared + 16 * k, std::is_same_v<LayoutB, wmma::row_major> ? 16 : k);
  wmma::fill_fragment(sum, *c);
  wmma::mma_sync(sum, left, right, sum);
  const unsigned warp = threadIdx.x / 32;
  wmma::store_matrix_sync(out + warp * 256, sum, 16, wmma::mem_row_major);
  wmma::store_matrix_sync(transposed + warp * 256, sum, 16, wmma::mem_col_major);
}

__global__ void half_warp_product_kernel(float* out) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0F);
  if (threadIdx.x < 16) wmma::mma_sync(sum, left, right, sum);
  out[threadIdx.x] = sum.x[0];
}

__global__ void misaligned_fragment_kernel(const float* x, float* out, int offset, int stride) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::load_matrix_sync(left, x + offset, static_cast<unsigned>(stride));
  out[threadIdx.x] = left.x[0];
}

template <int k, typename T, typename Element>
cudaError_t launch_products(const WarpProducts& p, cudaStream_t stream) {
  const Shape shape{1, 64, 2 * 16 * k * sizeof(Element)};
  const auto run = [&](auto kernel) { return launch(shape, stream, kernel, p.a, p.b, p.c, p.out, p.transposed); };
  using wmma::row_major, wmma::col_major;
  if (p.a_by_columns) {
    return p.b_by_columns ? run(product_of_warps_kernel<k, T, Element, col_major, col_major>)
                          : run(product_of_warps_kernel<k, T, Element, col_major, row_major>);
  }
  return p.b_by_columns ? run(product_of_warps_kernel<k, T, Element, row_major, col_major>)
                        : run(product_of_warps_kernel<k, T, Element, row_major, row_major>);
}

}  // namespace

cudaError_t tf32_products(const WarpProducts& products, cudaStream_t stream) {
  return launch_products<8, wmma::precision::tf32, float>(products, stream);
}
cudaError_t bfloat16_products(const WarpProducts& products, cudaStream_t stream) {
  return launch_products<16, __nv_bfloat16, __nv_bfloat16>(products, stream);
}
float rounded_to_tf32(float value) {
  return wmma::__float_to_tf32(value);
}
cudaError_t product_of_half_a_warp(float* out, cudaStream_t stream) {
  return launch({1, 32}, stream, half_warp_product_kernel, out);
}
cudaError_t load_misaligned_fragment(const float* x, float* out, int offset, int stride, cudaStream_t stream) {
  return launch({1, 32}, stream, misaligned_fragment_kernel, x, out, offset, stride);
}

}  // namespace simclr::test
