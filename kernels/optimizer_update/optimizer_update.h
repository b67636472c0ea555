// The updates of the optimizers and the check that guards them, element by element over runs of parameters.
//
// SGD (order of operations as in PyTorch's torch.optim.SGD, dampening 0):
//   g = grad + weight_decay * w;   v = momentum * v + g;   g = nesterov ? g + momentum * v : v;   w = w - lr * g
// AdamW (Loshchilov and Hutter 2019, as in torch.optim.AdamW):
//   m = beta1*m + (1-beta1)*grad;   v = beta2*v + (1-beta2)*grad*grad
//   w = (1 - lr*weight_decay)*w - lr*(m*c1) / (sqrt(v*c2) + eps),   c1 = 1/(1 - beta1^t), c2 = 1/(1 - beta2^t),
//   t = 1 for the first step; c1 and c2 are computed in double and rounded to float once
// LARS (You, Gitman and Ginsburg 2017, in the form of SimCLR's own code): decay, then ratio, then momentum, and the
// rate goes into the momentum:
//   g = grad + weight_decay * w;   v = momentum * v + (lr * ratio) * g;   w = w - v
//   ratio = trust_coefficient * |w| / |g| over the whole parameter where it is adapted and both norms are above zero;
//   otherwise 1
//   g is rounded to float once; lr * ratio is computed in double and rounded to float once
// Each does nothing when *skip is not 0: a non-finite step never reaches weights or moments. skip and flag are in the
// memory of the device. All arrays have the length of their run; no overlap. Synchronous on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/common/exec.h"

namespace simclr {

// One parameter: where its values lie and whether weight decay applies.
struct ParameterRun {
  float* weight = nullptr;
  const float* grad = nullptr;
  float* first = nullptr;   // SGD, LARS: momentum buffer; AdamW: exponential average of the gradient
  float* second = nullptr;  // AdamW: exponential average of the squared gradient
  int64_t elements = 0;
  bool decay = true;
  bool adapt = true;  // LARS: by the trust ratio
};

// The parameters of one update, and the same table in the memory of the device, so that a GPU takes them all in one
// launch; on the CPU both are the same memory.
struct ParameterTable {
  std::span<const ParameterRun> runs;
  const ParameterRun* on_device = nullptr;

  ParameterTable(std::span<const ParameterRun> host, const ParameterRun* device) : runs(host), on_device(device) {}
  template <typename Runs>  // implicit, for the CPU: anything that is a span of runs
  ParameterTable(const Runs& host) requires std::is_convertible_v<const Runs&, std::span<const ParameterRun>>
      : runs(host), on_device(runs.data()) {}
};

struct SgdUpdate {
  float lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
void sgd_update(const Exec& exec, const ParameterTable& table, const SgdUpdate& how, const int* skip);

struct AdamWUpdate {
  float lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  int64_t t = 1;
};
void adamw_update(const Exec& exec, const ParameterTable& table, const AdamWUpdate& how, const int* skip);

struct LarsUpdate {
  float lr = 0, momentum = 0, weight_decay = 0, trust_coefficient = 0;
};
// squares [2, runs], in the memory of the device: |w|^2 of each run, then |g|^2 with its decay (kernels/squared_norm).
// rates [runs]: scratch of the caller, in the memory of the device; lr * ratio of each run afterwards.
void lars_update(const Exec& exec, const ParameterTable& table, const LarsUpdate& how, const double* squares,
                 float* rates, const int* skip);

// Sets *flag to 1 when any of the values is infinite or NaN; never clears it.
void flag_non_finite(const Exec& exec, std::span<const float> values, int* flag);
void flag_non_finite(const Exec& exec, std::span<const double> values, int* flag);

}  // namespace simclr
