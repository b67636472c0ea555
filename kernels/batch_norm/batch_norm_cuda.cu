// batch_norm on CUDA, apart from its sums (batch_norm_sums_cuda.cu): per channel in one thread each, per element with
// the channel's coefficients in registers. No scratch memory.
#include <cmath>

#include "kernels/batch_norm/batch_norm_device.h"
#include "kernels/batch_norm/batch_norm_tile.cuh"

namespace simclr::batch_norm {
namespace {

constexpr int64_t kApplyRows = 256;  // of a block: eight for each thread

__global__ void statistics_kernel(const double* sums, int64_t padded, int groups, double count, double eps, float* mean,
                                  float* inv_std, double* var) {
  const int64_t k = thread_index();  // in [groups, padded]
  if (k >= groups * padded) return;
  const int64_t g = k / padded, c = k % padded;
  const double m = sums[g * 2 * padded + c] / count;
  double v = sums[(g * 2 + 1) * padded + c] / count - m * m;
  if (v < 0) v = 0;  // rounding of a constant channel; NaN stays NaN
  mean[k] = static_cast<float>(m);
  var[k] = v;
  // An overflow in the sums must not become a quiet 1/inf = 0: it is passed on as NaN, which ends the run.
  inv_std[k] = std::isfinite(v) ? static_cast<float>(1.0 / std::sqrt(v + eps)) : NAN;
}

// y = relu?((x - mean) * gamma*inv_std + beta [+ residual])
template <typename T>
__global__ void apply_kernel(Maps maps, Affine affine, const T* x, const T* residual, bool relu, T* y) {
  const Share share = share_of(maps);
  if (share.first >= share.end) return;
  const FourAffine of = four_of(affine, maps, share);
  for (int64_t r = share.first; r < share.end; r += kLanes) {
    const int64_t e = share.base + r * maps.padded;
    float v[kFour], add[kFour] = {};
    load_four(x + e, v);
    if (residual) load_four(residual + e, add);
    for (int k = 0; k < kFour; ++k) {
      v[k] = of.y(k, v[k]);
      if (residual) v[k] += add[k];
      if (relu) v[k] = relu_of(v[k]);
    }
    store_four(y + e, v);
  }
}

__global__ void parameter_gradients_kernel(const double* sums, int64_t channels, int64_t padded, int groups,
                                           const float* inv_std, float* grad_gamma, float* grad_beta) {
  const int64_t c = thread_index();
  if (c >= channels) return;
  double gamma = 0, beta = 0;
  for (int g = 0; g < groups; ++g) {
    beta += sums[g * 2 * padded + c];
    gamma += sums[(g * 2 + 1) * padded + c] * inv_std[g * padded + c];
  }
  grad_gamma[c] = static_cast<float>(gamma);
  grad_beta[c] = static_cast<float>(beta);
}

// grad_x = gamma*inv_std * (g - grad_beta/M - xhat*grad_gamma/M) = scale*g + (x - mean)*c1 + c0
template <typename T>
__global__ void backward_apply_kernel(Maps maps, Affine affine, bool relu, const T* grad_y, const T* relu_y, const T* x,
                                      const double* sums, double count, T* grad_x) {
  const Share share = share_of(maps);
  if (share.first >= share.end) return;
  const int64_t g = share.part % maps.groups;
  const FourAffine of = four_of(affine, maps, share);
  float slope[kFour], c1[kFour], c0[kFour];
  for (int k = 0; k < kFour; ++k) {
    const int64_t c = share.c + k, at = g * maps.padded + c;
    const double a = c < affine.channels ? static_cast<double>(affine.gamma[c]) * affine.inv_std[at] : 0.0;
    const double grad_beta = sums[g * 2 * maps.padded + c],
                 grad_gamma = sums[(g * 2 + 1) * maps.padded + c] * affine.inv_std[at];
    slope[k] = static_cast<float>(a);
    c1[k] = static_cast<float>(-a * affine.inv_std[at] * grad_gamma / count);
    c0[k] = static_cast<float>(-a * grad_beta / count);
  }
  for (int64_t r = share.first; r < share.end; r += kLanes) {
    const int64_t e = share.base + r * maps.padded;
    float gradient[kFour], v[kFour];
    load_four(grad_y + e, gradient);
    load_four(x + e, v);
    if (relu) pass_relu(relu_y, e, of, v, gradient);
    for (int k = 0; k < kFour; ++k) v[k] = slope[k] * gradient[k] + ((v[k] - of.mean[k]) * c1[k] + c0[k]);
    store_four(grad_x + e, v);
  }
}

__global__ void update_running_kernel(const float* mean, const double* var, int64_t channels, int64_t padded,
                                      int groups, double unbiased, double momentum, const int* skip,
                                      float* running_mean, float* running_var) {
  const int64_t c = thread_index();
  if (c >= channels || *skip != 0) return;
  for (int g = 0; g < groups; ++g) {
    const int64_t k = g * padded + c;
    running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * mean[k]);
    running_var[c] = static_cast<float>((1 - momentum) * running_var[c] + momentum * var[k] * unbiased);
  }
}

__global__ void use_running_kernel(const float* running_mean, const float* running_var, int64_t channels,
                                   int64_t padded, double eps, float* mean, float* inv_std, double* var) {
  const int64_t c = thread_index();
  if (c >= padded) return;
  const double v = c < channels ? running_var[c] : 0.0;
  mean[c] = c < channels ? running_mean[c] : 0.0F;
  var[c] = v;
  inv_std[c] = static_cast<float>(1.0 / std::sqrt(v + eps));
}

}  // namespace

void statistics(const CudaExec& exec, const double* sums, int64_t padded, int groups, int64_t count, double eps,
                BatchNormStatistics s) {
  launch(exec, "batch_norm_statistics", thread_each(groups * padded), statistics_kernel, sums, padded, groups,
         static_cast<double>(count), eps, s.mean, s.inv_std, s.var);
}

void apply(const CudaExec& exec, ConstActivation x, BatchNormStatistics s, const BatchNormApply& how, Elements y) {
  Maps maps = maps_of(x, how.groups);
  maps.chunk_rows = kApplyRows;
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "batch_norm_apply", grid_of(maps, x.shards), apply_kernel<T>, maps,
           Affine{s.mean, s.inv_std, how.gamma, how.beta, x.channels}, x.data.as<T>(), how.residual.as<T>(), how.relu,
           y.as<T>());
  });
}

void parameter_gradients(const CudaExec& exec, const double* sums, int64_t channels, int groups, BatchNormStatistics s,
                         float* grad_gamma, float* grad_beta) {
  launch(exec, "batch_norm_parameter_gradients", thread_each(channels), parameter_gradients_kernel, sums, channels,
         padded_cols(channels), groups, s.inv_std, grad_gamma, grad_beta);
}

void backward_apply(const CudaExec& exec, ConstActivation grad_y, ConstActivation x, BatchNormStatistics s,
                    const BatchNormBackward& how, const double* sums, int64_t count, Elements grad_x) {
  Maps maps = maps_of(x, how.groups);
  maps.chunk_rows = kApplyRows;
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "batch_norm_backward_apply", grid_of(maps, x.shards), backward_apply_kernel<T>, maps,
           Affine{s.mean, s.inv_std, how.gamma, how.beta, x.channels}, how.has_relu(), grad_y.data.as<T>(),
           how.relu_y.as<T>(), x.data.as<T>(), sums, static_cast<double>(count), grad_x.as<T>());
  });
}

void update_running(const CudaExec& exec, BatchNormStatistics s, int64_t channels, int groups, int64_t count,
                    double momentum, const int* skip, float* running_mean, float* running_var) {
  const double unbiased = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1.0;
  launch(exec, "batch_norm_update_running", thread_each(channels), update_running_kernel, s.mean, s.var, channels,
         padded_cols(channels), groups, unbiased, momentum, skip, running_mean, running_var);
}

void use_running(const CudaExec& exec, const float* running_mean, const float* running_var, int64_t channels,
                 double eps, BatchNormStatistics s) {
  const int64_t padded = padded_cols(channels);
  launch(exec, "batch_norm_use_running", thread_each(padded), use_running_kernel, running_mean, running_var, channels,
         padded, eps, s.mean, s.inv_std, s.var);
}

}  // namespace simclr::batch_norm
