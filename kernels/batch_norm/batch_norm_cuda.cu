// batch_norm on CUDA, apart from its sums (batch_norm_sums_cuda.cu): per channel in one thread each, per element with
// the channel's coefficients in registers. No scratch memory.
#include <cmath>

#include "kernels/batch_norm/batch_norm_device.h"
#include "kernels/batch_norm/batch_norm_tile.cuh"

namespace simclr::batch_norm {
namespace {

constexpr int64_t kApplyRows = 256;  // of a block: eight for each thread

__global__ void statistics_kernel(const double* sums, double eps, BatchNormStatistics s, int64_t padded) {
  const int64_t k = thread_index();  // in [groups, padded]
  if (k >= s.groups * padded) return;
  const int64_t g = k / padded, c = k % padded;
  const double count = as_double(s.count), mean = sums[g * 2 * padded + c] / count;
  double var = sums[(g * 2 + 1) * padded + c] / count - mean * mean;
  if (var < 0) var = 0;  // rounding of a constant channel; NaN stays NaN
  s.mean[k] = to_float(mean);
  s.var[k] = var;
  // An overflow in the sums must not become a quiet 1/inf = 0: it is passed on as NaN, which ends the run.
  s.inv_std[k] = std::isfinite(var) ? to_float(1.0 / std::sqrt(var + eps)) : NAN;
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

__global__ void parameter_gradients_kernel(const double* sums, BatchNormStatistics s, int64_t padded, float* grad_gamma,
                                           float* grad_beta) {
  const int64_t c = thread_index();
  if (c >= s.channels) return;
  double gamma = 0, beta = 0;
  for (int g = 0; g < s.groups; ++g) {
    beta += sums[g * 2 * padded + c];
    gamma += sums[(g * 2 + 1) * padded + c] * s.inv_std[g * padded + c];
  }
  grad_gamma[c] = to_float(gamma);
  grad_beta[c] = to_float(beta);
}

// grad_x = gamma*inv_std * (g - grad_beta/M - xhat*grad_gamma/M) = scale*g + (x - mean)*c1 + c0
template <typename T>
__global__ void backward_apply_kernel(Maps maps, Affine affine, Gradients<T> in, const double* sums, double count,
                                      T* grad_x) {
  const Share share = share_of(maps);
  if (share.first >= share.end) return;
  const int64_t g = share.part % maps.groups;
  const FourAffine of = four_of(affine, maps, share);
  float slope[kFour], c1[kFour], c0[kFour];
  for (int k = 0; k < kFour; ++k) {
    const int64_t c = share.c + k, at = g * maps.padded + c;
    const double a = c < affine.channels ? double{affine.gamma[c]} * affine.inv_std[at] : 0.0;
    const double grad_beta = sums[g * 2 * maps.padded + c],
                 grad_gamma = sums[(g * 2 + 1) * maps.padded + c] * affine.inv_std[at];
    slope[k] = to_float(a);
    c1[k] = to_float(-a * affine.inv_std[at] * grad_gamma / count);
    c0[k] = to_float(-a * grad_beta / count);
  }
  for (int64_t r = share.first; r < share.end; r += kLanes) {
    const int64_t e = share.base + r * maps.padded;
    float gradient[kFour], v[kFour];
    load_four(in.grad_y + e, gradient);
    load_four(in.x + e, v);
    if (in.relu) pass_relu(in.relu_y, e, of, v, gradient);
    for (int k = 0; k < kFour; ++k) v[k] = slope[k] * gradient[k] + ((v[k] - of.mean[k]) * c1[k] + c0[k]);
    store_four(grad_x + e, v);
  }
}

__global__ void update_running_kernel(BatchNormStatistics s, int64_t padded, double unbiased, double momentum,
                                      const int* skip, float* running_mean, float* running_var) {
  const int64_t c = thread_index();
  if (c >= s.channels || *skip != 0) return;
  for (int g = 0; g < s.groups; ++g) {
    const int64_t k = g * padded + c;
    running_mean[c] = to_float((1 - momentum) * running_mean[c] + momentum * s.mean[k]);
    running_var[c] = to_float((1 - momentum) * running_var[c] + momentum * s.var[k] * unbiased);
  }
}

__global__ void use_running_kernel(const float* running_mean, const float* running_var, double eps,
                                   BatchNormStatistics s, int64_t padded) {
  const int64_t c = thread_index();
  if (c >= padded) return;
  const double var = c < s.channels ? running_var[c] : 0.0;
  s.mean[c] = c < s.channels ? running_mean[c] : 0.0F;
  s.var[c] = var;
  s.inv_std[c] = to_float(1.0 / std::sqrt(var + eps));
}

}  // namespace

void statistics(const CudaExec& exec, const double* sums, double eps, const BatchNormStatistics& s) {
  const int64_t padded = padded_cols(s.channels);
  launch(exec, "batch_norm_statistics", thread_each(s.groups * padded), statistics_kernel, sums, eps, s, padded);
}

void apply(const CudaExec& exec, ConstActivation x, const BatchNormApply& how, Elements y) {
  Maps maps = maps_of(x, how.statistics.groups);
  maps.chunk_rows = kApplyRows;
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "batch_norm_apply", grid_of(maps, x.shards), apply_kernel<T>, maps,
           affine_of(how.statistics, how.gamma, how.beta), x.data.as<T>(), how.residual.as<T>(), how.relu, y.as<T>());
  });
}

void parameter_gradients(const CudaExec& exec, const double* sums, const BatchNormStatistics& s, float* grad_gamma,
                         float* grad_beta) {
  launch(exec, "batch_norm_parameter_gradients", thread_each(s.channels), parameter_gradients_kernel, sums, s,
         padded_cols(s.channels), grad_gamma, grad_beta);
}

void backward_apply(const CudaExec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                    const double* sums, Elements grad_x) {
  Maps maps = maps_of(x, how.statistics.groups);
  maps.chunk_rows = kApplyRows;
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "batch_norm_backward_apply", grid_of(maps, x.shards), backward_apply_kernel<T>, maps,
           affine_of(how.statistics, how.gamma, how.beta), gradients_of<T>(grad_y, x, how), sums,
           as_double(how.statistics.count), grad_x.as<T>());
  });
}

void update_running(const CudaExec& exec, const BatchNormStatistics& s, double momentum, const int* skip,
                    float* running_mean, float* running_var) {
  const double unbiased = s.count > 1 ? as_double(s.count) / as_double(s.count - 1) : 1.0;
  launch(exec, "batch_norm_update_running", thread_each(s.channels), update_running_kernel, s, padded_cols(s.channels),
         unbiased, momentum, skip, running_mean, running_var);
}

void use_running(const CudaExec& exec, const float* running_mean, const float* running_var, double eps,
                 const BatchNormStatistics& s) {
  const int64_t padded = padded_cols(s.channels);
  launch(exec, "batch_norm_use_running", thread_each(padded), use_running_kernel, running_mean, running_var, eps, s,
         padded);
}

}  // namespace simclr::batch_norm
