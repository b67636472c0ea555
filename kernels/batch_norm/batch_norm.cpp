// Shape checks of batch_norm, once for all devices, then dispatch on Exec.
#include "kernels/batch_norm/batch_norm.h"

#include <algorithm>

#include "kernels/batch_norm/batch_norm_chunks.h"
#include "kernels/batch_norm/batch_norm_device.h"

namespace simclr {
namespace {

void check_maps(const Exec& exec, const ConstActivation& x, int groups) {
  SIMCLR_CHECK(groups == 1 || groups == 2, "batch norm has one or two groups of statistics, not {}", groups);
  SIMCLR_CHECK(x.samples % groups == 0, "{} samples a shard cannot be cut into {} views", x.samples, groups);
  SIMCLR_CHECK(x.shards > 0 && x.elements() > 0, "batch norm of nothing");
  SIMCLR_CHECK(x.is_in(layout_of(exec)), "batch norm of maps in another layout than the device's");
}
void check_maps(const Exec& exec, const ConstActivation& x, const BatchNormStatistics& s) {
  check_maps(exec, x, s.groups);
  SIMCLR_CHECK(x.channels == s.channels, "batch norm of {} channels with statistics of {}", x.channels, s.channels);
}

}  // namespace

ScratchNeed batch_norm_scratch(int64_t shards, int64_t channels, int groups) {
  const int64_t padded = round_up(channels, channel_block());
  // On CUDA the chunks of each shard and the shards; on the CPU there is less.
  const int64_t parts = shards * groups * (batch_norm::most_chunks(padded, groups) + 1) * 2 * padded;
  const int64_t coefficients = (groups * 4 + 1) * padded;
  return {.workspace_bytes = std::max(bytes_of<double>(parts), bytes_of<float>(coefficients))};
}

void batch_norm_sums(const Exec& exec, ConstActivation x, int groups, double* sums) {
  check_maps(exec, x, groups);
  std::visit([&](const auto& device) { batch_norm::sums(device, x, groups, sums); }, exec);
}

void batch_norm_statistics(const Exec& exec, const double* sums, double eps, const BatchNormStatistics& s) {
  SIMCLR_CHECK(s.count > 0 && eps > 0, "statistics over {} values with eps {}", s.count, eps);
  std::visit([&](const auto& device) { batch_norm::statistics(device, sums, eps, s); }, exec);
}

void batch_norm_apply(const Exec& exec, ConstActivation x, const BatchNormApply& how, Activation y) {
  check_maps(exec, x, how.statistics);
  SIMCLR_CHECK(x.same_shape(y), "batch norm's output has another shape than its input");
  std::visit([&](const auto& device) { batch_norm::apply(device, x, how, y.data); }, exec);
}

void batch_norm_backward_sums(const Exec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                              Elements masked, double* sums) {
  check_maps(exec, x, how.statistics);
  SIMCLR_CHECK(x.same_shape(grad_y), "batch norm's gradient has another shape than its input");
  std::visit([&](const auto& device) { batch_norm::backward_sums(device, grad_y, x, how, masked, sums); }, exec);
}

void batch_norm_parameter_gradients(const Exec& exec, const double* sums, const BatchNormStatistics& s,
                                    float* grad_gamma, float* grad_beta) {
  std::visit([&](const auto& device) { batch_norm::parameter_gradients(device, sums, s, grad_gamma, grad_beta); },
             exec);
}

void batch_norm_backward_apply(const Exec& exec, ConstActivation grad_y, ConstActivation x,
                               const BatchNormBackward& how, const double* sums, Activation grad_x) {
  check_maps(exec, x, how.statistics);
  SIMCLR_CHECK(how.statistics.count > 0, "batch norm's gradient over {} values", how.statistics.count);
  SIMCLR_CHECK(x.same_shape(grad_y) && x.same_shape(grad_x),
               "batch norm's gradients have another shape than its input");
  std::visit([&](const auto& device) { batch_norm::backward_apply(device, grad_y, x, how, sums, grad_x.data); }, exec);
}

void batch_norm_update_running(const Exec& exec, const BatchNormStatistics& s, double momentum, const int* skip,
                               float* running_mean, float* running_var) {
  SIMCLR_CHECK(s.count > 0, "running statistics from {} values", s.count);
  std::visit(
      [&](const auto& device) { batch_norm::update_running(device, s, momentum, skip, running_mean, running_var); },
      exec);
}

void batch_norm_use_running(const Exec& exec, const float* running_mean, const float* running_var, double eps,
                            const BatchNormStatistics& s) {
  SIMCLR_CHECK(s.groups == 1, "evaluation has one group of statistics, not {}", s.groups);
  std::visit([&](const auto& device) { batch_norm::use_running(device, running_mean, running_var, eps, s); }, exec);
}

}  // namespace simclr
