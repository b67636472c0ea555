// Batch normalization over the GLOBAL batch, with fused residual add and ReLU (Ioffe and Szegedy 2015).
//   mean = sum(x)/M, var = sum(x^2)/M - mean^2 (biased), M = elements per channel of all ranks
//   y = relu?( gamma * (x - mean) / sqrt(var + eps) + beta [+ residual] )
//   grad_gamma = sum g*xhat, grad_beta = sum g,  g = grad_y where y > 0 (with ReLU), else grad_y
//   grad_x = gamma*inv_std * ( g - grad_beta/M - xhat * grad_gamma/M );   grad_residual = g
//
// The op makes each rank's part of the sums; the layer (nn/batch_norm_layer) adds them over ranks between two calls.
// Groups: 1 = one set of statistics for both views (joint), 2 = one per view; in a shard the first half of the samples
// is view 1. A group's M is the count of that group.
// Shapes: x, y, residual [shards, samples, C, H, W]; statistics [groups, Cp], sums [groups, 2, Cp], gamma and beta [C];
// Cp = C rounded up to the channel block. Padding channels: statistics 0, output 0.
// Bits: sums are made per shard in double, shards combined by the ordered tree; ranks and threads do not change them.
// Large means lose nothing: sums are taken about the first value of each channel in the shard.
// Residual, relu_y and masked are stored as x is; statistics, sums and parameters never are bfloat16.
// Synchronous on the CPU. No allocation: needs batch_norm_scratch().
#pragma once

#include <cstdint>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// Of the global batch: what they are taken over, and where they are. Every call of one layer gets the same.
struct BatchNormStatistics {
  int64_t channels = 0;
  int groups = 1;
  int64_t count = 0;         // M of one group; evaluation needs none
  float* mean = nullptr;     // [groups, Cp]
  float* inv_std = nullptr;  // [groups, Cp]  1/sqrt(var + eps)
  double* var = nullptr;     // [groups, Cp]  biased, for the running statistics
};

ScratchNeed batch_norm_scratch(int64_t shards, int64_t channels, int groups);
inline int64_t batch_norm_sum_elements(int64_t channels, int groups) {
  return groups * 2 * round_up(channels, channel_block());
}

// sums[g][0] = sum x, sums[g][1] = sum x^2 over this rank's shards.
void batch_norm_sums(const Exec& exec, ConstActivation x, int groups, double* sums);

// mean, inv_std and var from the global sums.
void batch_norm_statistics(const Exec& exec, const double* sums, double eps, const BatchNormStatistics& statistics);

struct BatchNormApply {
  BatchNormStatistics statistics;
  bool relu = false;
  const float* gamma = nullptr;  // [C]
  const float* beta = nullptr;   // [C]
  ConstElements residual{};      // like x, or none
};
// y may be x or residual.
void batch_norm_apply(const Exec& exec, ConstActivation x, const BatchNormApply& how, Activation y);

struct BatchNormBackward {
  BatchNormStatistics statistics;
  const float* gamma = nullptr;  // [C]
  // What fused ReLU let through, neither without ReLU. With a residual, relu_y: the forward output. Without one, beta
  // [C] is enough: y is computed from x again, by the operations of batch_norm_apply, and need not be read.
  ConstElements relu_y{};
  const float* beta = nullptr;
  bool has_relu() const { return relu_y || beta; }
};
// sums[g][0] = sum g, sums[g][1] = sum g*(x - mean) over this rank's shards. masked, when given, receives g
// (it may be grad_y itself) and is then what batch_norm_backward_apply takes, with relu_y and beta left out.
void batch_norm_backward_sums(const Exec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                              Elements masked, double* sums);

// grad_gamma, grad_beta [C] from the global sums (already global: not to be summed over ranks again).
void batch_norm_parameter_gradients(const Exec& exec, const double* sums, const BatchNormStatistics& statistics,
                                    float* grad_gamma, float* grad_beta);

// sums: the global ones of batch_norm_backward_sums. grad_x may be grad_y or x.
void batch_norm_backward_apply(const Exec& exec, ConstActivation grad_y, ConstActivation x,
                               const BatchNormBackward& how, const double* sums, Activation grad_x);

// running = (1-momentum)*running + momentum*new, with the unbiased variance, once per group, view 1 first.
// Does nothing when *skip is not 0 (a step that went non-finite leaves no trace).
void batch_norm_update_running(const Exec& exec, const BatchNormStatistics& statistics, double momentum,
                               const int* skip, float* running_mean, float* running_var);

// Evaluation mode: statistics (one group) from the running ones.
void batch_norm_use_running(const Exec& exec, const float* running_mean, const float* running_var, double eps,
                            const BatchNormStatistics& statistics);

}  // namespace simclr
