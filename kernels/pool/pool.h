// The two poolings of a ResNet, per sample: bits depend on the sample alone.
//   global average: y[i, c] = mean over places of x[i, c];            grad_x = grad_y / (H*W)
//   max 3x3, stride 2, padding 1 (the ImageNet stem): the first maximum in row order wins, as in PyTorch; NaN wins over
//   numbers.  grad_x adds grad_y at the place that won.
// Shapes: x [shards, samples, C, H, W]; average y [shards*samples, C] with stride padded_cols(C); max y [.., C, H',
// W'], H' = (H - 1)/2 + 1, and `winners`, the place of each maximum in its 3x3 window (one byte per element of y, in
// its order). No aliasing. Synchronous on the CPU.
#pragma once

#include <cstdint>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

void global_average_pool_forward(const Exec& exec, ConstActivation x, Matrix y);
void global_average_pool_backward(const Exec& exec, ConstMatrix grad_y, Activation grad_x);

inline int64_t max_pool_out(int64_t size) {
  return (size - 1) / 2 + 1;
}
void max_pool_forward(const Exec& exec, ConstActivation x, Activation y, uint8_t* winners);
void max_pool_backward(const Exec& exec, ConstActivation grad_y, const uint8_t* winners, Activation grad_x);

}  // namespace simclr
