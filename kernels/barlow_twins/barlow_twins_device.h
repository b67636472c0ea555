// What each device implements of barlow_twins; called after the shapes have been checked. Not for users of the op.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/barlow_twins/barlow_twins.h"

namespace simclr::barlow_twins {

// A product's bits may change with its shape, so [C, C] is cut by C alone. On the CPU a task takes kBlock columns.
inline constexpr int64_t kBlock = 64;

// CUDA: rows of [C, C] that one product makes; all of them up to C = 2048.
inline int64_t cuda_block_rows(int64_t columns) {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  return std::min(columns, std::max(kBlock, kMostElements / columns / kBlock * kBlock));
}

// Floats of [rows, columns], rounded up so that the next matrix starts at 256 bytes too.
inline int64_t aligned_elements(int64_t rows, int64_t columns) {
  return round_up(rows * columns, 64);
}

// Sums of shards that wait for their sibling in the tree, next to the result itself.
inline int64_t waiting_sums(int64_t shards) {
  return std::bit_width(static_cast<uint64_t>(shards)) - 1;
}

// The ordered tree over shards with log2(shards) + 1 matrices instead of one a shard. make(shard, d) puts the shard's
// part into matrix d, add(d) adds matrix d + 1 to matrix d; the sum ends in matrix 0.
template <typename MakeFn, typename AddFn>
void sum_shards(int64_t shards, MakeFn&& make, AddFn&& add) {
  int64_t depth = 0;
  for (int64_t shard = 0; shard < shards; ++shard) {
    make(shard, depth++);
    for (int64_t left = shard; (left & 1) != 0; left /= 2, --depth) add(depth - 2);
  }
}

void sums(const CpuExec&, const ConstMatrix& z, const BarlowTwinsProblem&, double* sums);
void square_sums(const CpuExec&, const ConstMatrix& z, const BarlowTwinsProblem&, const double* sums, double* squares);
void standardize(const CpuExec&, const ConstMatrix& z, const BarlowTwinsProblem&, const double* sums,
                 const double* squares, const FloatMatrix& y, double* inv_std);
void products(const CpuExec&, const ConstFloatMatrix& y, const BarlowTwinsProblem&, float* products);
void loss(const CpuExec&, const BarlowTwinsProblem&, float* products_to_grad, double* radial, double* loss);
void backward(const CpuExec&, const ConstFloatMatrix& y, const BarlowTwinsProblem&, const float* grad_c,
              const double* inv_std, const double* radial, const Matrix& grad_z);

void sums(const CudaExec&, const ConstMatrix& z, const BarlowTwinsProblem&, double* sums);
void square_sums(const CudaExec&, const ConstMatrix& z, const BarlowTwinsProblem&, const double* sums, double* squares);
void standardize(const CudaExec&, const ConstMatrix& z, const BarlowTwinsProblem&, const double* sums,
                 const double* squares, const FloatMatrix& y, double* inv_std);
void products(const CudaExec&, const ConstFloatMatrix& y, const BarlowTwinsProblem&, float* products);
void loss(const CudaExec&, const BarlowTwinsProblem&, float* products_to_grad, double* radial, double* loss);
void backward(const CudaExec&, const ConstFloatMatrix& y, const BarlowTwinsProblem&, const float* grad_c,
              const double* inv_std, const double* radial, const Matrix& grad_z);

}  // namespace simclr::barlow_twins
