// exp as the kernels of infonce take it. Only for *.cu files.
#pragma once

namespace simclr::detail {

// Below -87 exp gives 0 instead of a denormal number, as on the CPU (exp.h). NaN stays NaN.
__device__ inline float exp_of(float x) {
  return x < -87.0F ? 0.0F : expf(x);
}

}  // namespace simclr::detail
