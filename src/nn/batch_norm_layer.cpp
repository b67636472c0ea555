#include "src/nn/batch_norm_layer.h"

#include <vector>

#include "src/nn/initializer.h"

namespace simclr {

BatchNormLayer::BatchNormLayer(const LayerContext& lc, const std::string& name, int64_t channels, int64_t height,
                               int64_t width)
    : context_(&lc.context),
      collectives_(&lc.collectives),
      settings_(lc.batch_norm),
      groups_(lc.batch_norm.views == BatchNormViews::kSeparate ? 2 : 1),
      weight_(&lc.store.add(name + ".weight", {channels}, GradientScope::kGlobal)),
      bias_(&lc.store.add(name + ".bias", {channels}, GradientScope::kGlobal)),
      running_mean_(&lc.store.add_buffer(name + ".running_mean", {channels})),
      running_var_(&lc.store.add_buffer(name + ".running_var", {channels})) {
  const int64_t padded = groups_ * round_up(channels, channel_block());
  mean_ = lc.context.allocate_elements<float>(padded);
  inv_std_ = lc.context.allocate_elements<float>(padded);
  var_ = lc.context.allocate_elements<double>(padded);
  sums_ = lc.context.allocate_elements<double>(batch_norm_sum_elements(channels, groups_));
  statistics_ = {.channels = channels,
                 .groups = groups_,
                 .count = lc.geometry.global_rows() / groups_ * height * width,
                 .mean = mean_.as<float>().data(),
                 .inv_std = inv_std_.as<float>().data(),
                 .var = var_.as<double>().data()};
  lc.context.reserve(batch_norm_scratch(lc.geometry.local_shards, channels, groups_));
}

void BatchNormLayer::forward(Mode mode, ConstActivation x, const Fused& fused, Activation y) {
  const Exec& exec = context_->exec();
  // x is read for the sums; then x and the residual are read and y is written.
  const ProfileSpan span(context_->profiler(), named("forward"),
                         [&] { return Work{.bytes = bytes_of(x) * (fused.residual ? 4 : 3)}; });
  BatchNormStatistics statistics = statistics_;
  if (mode == Mode::kTrain) {
    const auto sums = sums_.as<double>();
    batch_norm_sums(exec, x, groups_, sums.data());
    collectives_->ordered_sum(sums);  // [groups, 2, Cp]: now over all ranks
    batch_norm_statistics(exec, sums.data(), settings_.eps, statistics);
  } else {
    statistics.groups = 1;
    batch_norm_use_running(exec, running_mean_->value, running_var_->value, settings_.eps, statistics);
  }
  batch_norm_apply(exec, x,
                   {.statistics = statistics,
                    .relu = fused.relu,
                    .gamma = weight_->value,
                    .beta = bias_->value,
                    .residual = fused.residual},
                   y);
}

void BatchNormLayer::backward(ConstActivation grad_y, ConstActivation x, ConstElements relu_y, Elements masked,
                              Activation grad_x) {
  const Exec& exec = context_->exec();
  // Both passes read grad_y and x, the second writes grad_x; with masked the first also reads relu_y and writes masked.
  const ProfileSpan span(context_->profiler(), named("backward"),
                         [&] { return Work{.bytes = bytes_of(x) * (masked ? 7 : 5)}; });
  const auto sums = sums_.as<double>();
  BatchNormBackward how{.statistics = statistics_, .gamma = weight_->value};
  if (masked)
    how.relu_y = relu_y;
  else if (relu_y)
    how.beta = bias_->value;
  batch_norm_backward_sums(exec, grad_y, x, how, masked, sums.data());
  collectives_->ordered_sum(sums);  // [groups, 2, Cp]: sum g, sum g*(x - mean) over all ranks
  batch_norm_parameter_gradients(exec, sums.data(), statistics_, weight_->grad, bias_->grad);
  if (masked) {
    grad_y.data = masked;
    how.relu_y = {};
  }
  batch_norm_backward_apply(exec, grad_y, x, how, sums.data(), grad_x);
}

void BatchNormLayer::update_running_statistics(const int* skip) {
  batch_norm_update_running(context_->exec(), statistics_, settings_.momentum, skip, running_mean_->value,
                            running_var_->value);
}

void BatchNormLayer::initialize(float gamma) {
  Device& device = context_->device();
  initialize_constant(*context_, *weight_, gamma);
  initialize_constant(*context_, *bias_, 0.0F);
  const std::vector<float> ones(statistics_.channels, 1.0F);
  device.zero(running_mean_->value, ones.size() * sizeof(float));
  device.upload(running_var_->value, ones.data(), ones.size() * sizeof(float));
}

}  // namespace simclr
