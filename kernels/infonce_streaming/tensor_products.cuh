// Products of 16 x 16 parts on tensor cores, by warps, in two kinds: of single precision, and of bfloat16. Only for
// *.cu files, for GPUs from sm_80 on.
//
// Single precision: an operand is split into two numbers of tf32, x = high + low with |low| <= 2^-11 |x|, which leaves
// out less than 2^-22 |x|. Three products, low high + high low + high high, leave out low low, 2^-22 of a term. Tensor
// cores cut sums off towards zero, which would add up over a long chain (Ootomo & Yokota, "Recovering single precision
// accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022). So they sum 8 terms from
// zero, and those sums are added up by the ordinary, rounding addition.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

namespace simclr::detail {

namespace wmma = nvcuda::wmma;

inline constexpr int kPart = 16;  // rows and columns of a product

struct SinglePrecisionProducts {
  using Element = float;            // in shared memory
  static constexpr int kDepth = 8;  // terms of one instruction
  using Sum = wmma::fragment<wmma::accumulator, kPart, kPart, kDepth, float>;

  template <typename Use, typename Layout>
  struct Operand {
    wmma::fragment<Use, kPart, kPart, kDepth, wmma::precision::tf32, Layout> high, low;

    __device__ void load(const float* p, unsigned stride) {
      wmma::load_matrix_sync(high, p, stride);
#pragma unroll
      for (int i = 0; i < high.num_elements; ++i) {
        const float value = high.x[i];
        high.x[i] = wmma::__float_to_tf32(value);
        low.x[i] = wmma::__float_to_tf32(value - high.x[i]);
      }
    }
  };

  static __device__ Element to_element(float value) {
    return value;
  }
  template <typename Left, typename Right>
  static __device__ void multiply_add(const Left& left, const Right& right, Sum& sum) {
    Sum part;
    wmma::fill_fragment(part, 0.0F);
    wmma::mma_sync(part, left.low, right.high, part);
    wmma::mma_sync(part, left.high, right.low, part);
    wmma::mma_sync(part, left.high, right.high, part);
#pragma unroll
    for (int i = 0; i < part.num_elements; ++i) sum.x[i] += part.x[i];
  }
};

struct Bfloat16Products {
  using Element = __nv_bfloat16;
  static constexpr int kDepth = 16;
  using Sum = wmma::fragment<wmma::accumulator, kPart, kPart, kDepth, float>;

  template <typename Use, typename Layout>
  struct Operand {
    wmma::fragment<Use, kPart, kPart, kDepth, __nv_bfloat16, Layout> value;

    __device__ void load(const __nv_bfloat16* p, unsigned stride) { wmma::load_matrix_sync(value, p, stride); }
  };

  static __device__ Element to_element(float value) { return __float2bfloat16(value); }
  template <typename Left, typename Right>
  static __device__ void multiply_add(const Left& left, const Right& right, Sum& sum) {
    wmma::mma_sync(sum, left.value, right.value, sum);
  }
};

}  // namespace simclr::detail
