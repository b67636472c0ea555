// batch_norm as plain loops in double on plain NCHW arrays of the whole global batch: the readable definition that the
// tests hold the fast one to. Mean and variance in two passes.
#pragma once

#include <cstdint>
#include <vector>

namespace simclr::batch_norm_ref {

// x [shards*samples, C, H, W]; with two groups, the first half of the samples of each shard is group 0.
struct Shape {
  int64_t shards = 1, samples = 1, channels = 1, height = 1, width = 1;
  int groups = 1;

  int64_t group_count() const { return shards * samples / groups * height * width; }  // M
};

struct Forward {
  std::vector<double> y;          // like x
  std::vector<double> mean, var;  // [groups, C], biased variance
};
// y = relu?( gamma * (x - mean) / sqrt(var + eps) + beta [+ residual] ); residual like x, or empty.
Forward forward(const Shape& shape, const std::vector<double>& x, const std::vector<double>& gamma,
                const std::vector<double>& beta, const std::vector<double>& residual, bool relu, double eps);

struct Backward {
  std::vector<double> grad_x, grad_residual;  // like x
  std::vector<double> grad_gamma, grad_beta;  // [C], summed over groups
};
// relu_y: the forward output when ReLU was fused, else empty.
Backward backward(const Shape& shape, const std::vector<double>& grad_y, const std::vector<double>& x,
                  const std::vector<double>& relu_y, const std::vector<double>& gamma, double eps);

}  // namespace simclr::batch_norm_ref
