// The loops of batch_norm over the feature maps of one channel block on the CPU. Not for users of the op.
#pragma once

#include <cstdint>

#include "kernels/common/bfloat16.h"

namespace simclr::batch_norm {

// A run of feature maps of one channel block: `samples` maps of `rows` places, `stride` elements apart.
struct BlockMaps {
  int64_t samples, rows, stride;
};

// The coefficients of one channel block: y = (x - mean)*scale + beta.
struct BlockAffine {
  const float *mean, *scale, *beta;
};

// What backward reads of one channel block; T is what feature maps are stored as.
template <typename T>
struct BlockGradients {
  const T *grad_y, *relu_y, *x;  // relu_y may be none
  bool relu;                     // without relu_y: y is computed from x again
};

// grad_x = slope*g + c1*(x - mean) + c0
struct BlockLine {
  const float *slope, *c1, *c0;
};

// In all of them `block` is channel_block(), 16 with bfloat16; T is float or Bfloat16. Bits depend on the arguments
// alone: floats are added within one feature map (a few hundred terms), doubles across maps.

// sum x and sum x^2 of each lane, taken about the lane's first value.
void sum_block(int64_t block, const float* x, BlockMaps maps, double* sum, double* square);
void sum_block(int64_t block, const Bfloat16* x, BlockMaps maps, double* sum, double* square);

// sum g and sum g*(x - mean) of each lane; g = grad_y where y > 0 with ReLU, else grad_y; g is written to masked when
// that is given.
void sum_gradient_block(int64_t block, BlockGradients<float> in, BlockAffine of, BlockMaps maps, float* masked,
                        double* sum, double* product);
void sum_gradient_block(int64_t block, BlockGradients<Bfloat16> in, BlockAffine of, BlockMaps maps, Bfloat16* masked,
                        double* sum, double* product);

// y = relu?((x - mean)*scale + beta [+ residual]) of one map of `rows` places.
void apply_map(int64_t block, const float* x, const float* residual, BlockAffine of, bool relu, int64_t rows, float* y);
void apply_map(int64_t block, const Bfloat16* x, const Bfloat16* residual, BlockAffine of, bool relu, int64_t rows,
               Bfloat16* y);

// grad_x of one map of `rows` places.
void backward_map(int64_t block, BlockGradients<float> in, BlockAffine of, BlockLine line, int64_t rows, float* grad_x);
void backward_map(int64_t block, BlockGradients<Bfloat16> in, BlockAffine of, BlockLine line, int64_t rows,
                  Bfloat16* grad_x);

}  // namespace simclr::batch_norm
