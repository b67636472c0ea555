#include "src/nn/projector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/linear/linear.h"
#include "kernels/relu/relu.h"
#include "src/nn/initializer.h"

namespace simclr {

Projector::Projector(const LayerContext& lc, const ProjectorSettings& settings, int64_t in_features) : lc_(lc) {
  const int64_t rows = lc.geometry.local_rows();
  int64_t widest = in_features, in = in_features;
  int index = 0;  // place in the equivalent torch.nn.Sequential
  for (int i = 0; i < settings.layers; ++i) {
    const bool last = i == settings.layers - 1, normalised = !last && settings.batch_norm;
    Layer& layer = layers_.emplace_back();
    layer.in = in;
    layer.out = last ? settings.output : settings.hidden;
    layer.relu = !last;
    layer.weight =
        &lc.store.add(fmt::format("projector.{}.weight", index), {layer.out, layer.in}, GradientScope::kPerRank);
    if (!normalised)
      layer.bias = &lc.store.add(fmt::format("projector.{}.bias", index), {layer.out}, GradientScope::kPerRank);
    if (normalised) layer.bn.emplace(lc, fmt::format("projector.{}", index + 1), layer.out, 1, 1);
    index += normalised ? 3 : 2;
    layer.linear_out = lc.context.allocate_storage(rows * padded_cols(layer.out));
    if (layer.relu) layer.activated = lc.context.allocate_storage(rows * padded_cols(layer.out));
    lc.context.reserve(linear_scratch(lc.geometry.local_shards, layer.in, layer.out));
    widest = std::max(widest, layer.out);
    in = layer.out;
  }
  grad_a_ = lc.context.allocate_storage(rows * padded_cols(widest));
  grad_b_ = lc.context.allocate_storage(rows * padded_cols(widest));
}

Matrix Projector::matrix(const Buffer& buffer, int64_t cols) const {
  return {buffer.as<float>().data(), lc_.geometry.local_rows(), cols, padded_cols(cols),
          lc_.context.device().storage()};
}

ConstMatrix Projector::forward(Mode mode, ConstMatrix h) {
  const Exec& exec = lc_.context.exec();
  const int64_t shards = lc_.geometry.local_shards;
  ConstMatrix x = h;
  for (auto& layer : layers_) {
    const Matrix y = matrix(layer.linear_out, layer.out);
    linear_forward(exec, shards, x, layer.weight->value, layer.bias ? layer.bias->value : nullptr, y);
    if (layer.relu) {
      const Matrix a = matrix(layer.activated, layer.out);
      if (layer.bn)
        layer.bn->forward(mode, as_activation(y, shards), {.relu = true}, as_activation(a, shards));
      else
        relu_forward(exec, y.elements(), y.data, a.data, y.type);
    }
    x = output(layer);
  }
  return x;
}

ConstMatrix Projector::backward(ConstMatrix h, ConstMatrix grad_z) {
  const Exec& exec = lc_.context.exec();
  const int64_t shards = lc_.geometry.local_shards;
  Buffer *spare = &grad_a_, *other = &grad_b_;
  ConstMatrix grad = grad_z;  // dL/d(output of layer i)
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    if (layer.relu) {  // a = relu(bn(y)) or relu(y)
      const Matrix grad_y = matrix(*spare, layer.out), a = matrix(layer.activated, layer.out);
      const Matrix y = matrix(layer.linear_out, layer.out);
      if (layer.bn)
        layer.bn->backward(as_activation(grad, shards), as_activation(y, shards), a.data, nullptr,
                           as_activation(grad_y, shards));
      else
        relu_backward(exec, a.elements(), grad.data, a.data, grad_y.data, a.type);
      grad = grad_y;
      std::swap(spare, other);
    }
    const ConstMatrix x = i > 0 ? output(layers_[i - 1]) : h;  // y = x W^T + b
    linear_backward_weights(exec, shards, x, grad, layer.weight->grad, layer.bias ? layer.bias->grad : nullptr);
    const Matrix grad_x = matrix(*spare, layer.in);
    linear_backward_data(exec, shards, grad, layer.weight->value, grad_x);
    grad = grad_x;
    std::swap(spare, other);
  }
  return grad;
}

void Projector::initialize(uint64_t seed) {
  for (auto& layer : layers_) {
    initialize_uniform(lc_.context, *layer.weight, layer.in, seed);
    if (layer.bias) initialize_uniform(lc_.context, *layer.bias, layer.in, seed);
    if (layer.bn) layer.bn->initialize(1.0F);
  }
}

void Projector::update_running_statistics(const int* skip) {
  for (auto& layer : layers_)
    if (layer.bn) layer.bn->update_running_statistics(skip);
}

double Projector::forward_flops() const {
  double total = 0;
  for (const auto& layer : layers_)
    total += 2.0 * static_cast<double>(lc_.geometry.local_rows()) * static_cast<double>(layer.in * layer.out);
  return total;
}

}  // namespace simclr
