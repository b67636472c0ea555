// conv2d as plain loops in double on plain NCHW arrays: the readable definition that the tests hold the fast ones to.
#pragma once

#include <vector>

#include "kernels/conv2d/conv2d.h"

namespace simclr::conv2d_ref {

// x [N, in, H, W], weight [out, in, k, k], y [N, out, H', W'] with N = shards * samples.
std::vector<double> forward(const Conv2dParams& p, const std::vector<double>& x, const std::vector<double>& weight);
std::vector<double> backward_data(const Conv2dParams& p, const std::vector<double>& grad_y,
                                  const std::vector<double>& weight);
std::vector<double> backward_weights(const Conv2dParams& p, const std::vector<double>& x,
                                     const std::vector<double>& grad_y);

}  // namespace simclr::conv2d_ref
