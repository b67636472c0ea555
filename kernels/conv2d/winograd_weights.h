// Weights of a 3x3 convolution transformed for Winograd's F(4x4, 3x3): G g G^T, 6x6 values for each 3x3 window g (Lavin
// and Gray 2016, arXiv:1509.09308, section 4.1). The library transforms them in each call, that is once for every
// shard; here once for all.
#pragma once

#include "kernels/common/exec.h"
#include "kernels/common/winograd_layout.h"
#include "kernels/conv2d/winograd_table.h"

namespace simclr::conv2d {

// weight [out, in, 3, 3] -> transformed, as `layout` says, 64-byte aligned; channels beyond `out` and `in` become zero.
// kBackwardData, which is the forward convolution of grad_y with windows turned by 180 degrees: layout's out are the
// weight's in, and the other way round. The bits do not depend on the number of threads.
void transform_weights(const CpuExec& exec, const float* weight, int64_t out, int64_t in, Pass pass,
                       const WinogradLayout& layout, float* transformed);

}  // namespace simclr::conv2d
