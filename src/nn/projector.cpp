#include "src/nn/projector.h"

#include <fmt/format.h>

#include "kernels/common/numbers.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/linear/linear.h"
#include "src/nn/initializer.h"

namespace simclr {

Projector::Projector(const LayerContext& lc, const ProjectorSettings& settings, int64_t in_features,
                     ActivationArena::Moment grad_h_read_at)
    : lc_(lc) {
  using Arena = ActivationArena;
  int64_t in = in_features;
  int index = 0;  // place in the equivalent torch.nn.Sequential
  Arena::Moment grad_read = grad_h_read_at;
  for (int i = 0; i < settings.layers; ++i) {
    const bool last = i == settings.layers - 1, normalized = !last && settings.batch_norm;
    Layer& layer = layers_.emplace_back();
    layer.in = in;
    layer.out = last ? settings.output : settings.hidden;
    layer.relu = !last;
    layer.weight =
        &lc.store.add(fmt::format("projector.{}.weight", index), {layer.out, layer.in}, GradientScope::kPerRank);
    if (!normalized)
      layer.bias = &lc.store.add(fmt::format("projector.{}.bias", index), {layer.out}, GradientScope::kPerRank);
    if (normalized) layer.bn.emplace(lc, fmt::format("projector.{}", index + 1), layer.out, 1, 1);
    index += normalized ? 3 : 2;
    const Arena::Moment linear = lc.arena.next(), relu = lc.arena.next();
    layer.linear_out = MatrixBuffer(lc, layer.out, {linear, Arena::backward_of(linear)});
    if (layer.relu) layer.activated = MatrixBuffer(lc, layer.out, {relu, Arena::backward_of(relu)});
    layer.grad_x = MatrixBuffer(lc, layer.in, {Arena::backward_of(linear), grad_read});
    grad_read = Arena::backward_of(relu);
    lc.context.reserve(linear_scratch(lc.geometry.local_shards, layer.in, layer.out));
    in = layer.out;
  }
}

template <typename Linear>
void Projector::product(const Layer& layer, std::string_view op, Linear&& linear) const {
  const ProfileSpan span(lc_.context.profiler(), {OpKind::kMatrixProduct, layer_of(*layer.weight), op}, [&] {
    const int64_t rows = lc_.geometry.local_rows(), weights = layer.weight->elements;
    const double type_bytes = as_double(size_of(lc_.context.device().storage()));
    return Work{.flops = 2.0 * as_double(rows) * as_double(weights),
                .bytes = type_bytes * as_double(rows * (layer.in + layer.out)) + sizeof(float) * as_double(weights)};
  });
  linear();
}

template <typename Relu>
void Projector::relu(const Layer& layer, std::string_view op, ConstMatrix y, Relu&& work) const {
  const ProfileSpan span(lc_.context.profiler(), {OpKind::kElementwise, layer_of(*layer.weight), op},
                         [&] { return Work{.bytes = (op == "relu" ? 2 : 3) * bytes_of(y)}; });
  work();
}

ConstMatrix Projector::forward(Mode mode, ConstMatrix h) {
  const Exec& exec = lc_.context.exec();
  const int64_t shards = lc_.geometry.local_shards;
  ConstMatrix x = h;
  for (auto& layer : layers_) {
    const Matrix y = layer.linear_out.view();
    product(layer, "forward",
            [&] { linear_forward(exec, shards, x, layer.weight->value, layer.bias ? layer.bias->value : nullptr, y); });
    if (layer.relu) {
      const Matrix a = layer.activated.view();
      if (layer.bn)
        layer.bn->forward(mode, as_activation(y, shards), {.relu = true}, as_activation(a, shards));
      else
        relu(layer, "relu", y, [&] { relu_forward(exec, y.elements(), y.data, a.data); });
    }
    x = output(layer);
  }
  return x;
}

ConstMatrix Projector::backward(ConstMatrix h, ConstMatrix grad_z) {
  const Exec& exec = lc_.context.exec();
  const int64_t shards = lc_.geometry.local_shards;
  ConstMatrix grad = grad_z;  // dL/d(output of layer i)
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    if (layer.relu) {  // a = relu(bn(y)) or relu(y); each element of y is read before its gradient replaces it
      const Matrix a = layer.activated.view(), y = layer.linear_out.view(), grad_y = y;
      if (layer.bn)
        layer.bn->backward(as_activation(grad, shards), as_activation(y, shards), a.data, {},
                           as_activation(grad_y, shards));
      else
        relu(layer, "relu backward", y, [&] { relu_backward(exec, a.elements(), grad.data, a.data, grad_y.data); });
      grad = grad_y;
    }
    const ConstMatrix x = i > 0 ? output(layers_[i - 1]) : h;  // y = x W^T + b
    product(layer, "backward weights", [&] {
      linear_backward_weights(exec, shards, x, grad, layer.weight->grad, layer.bias ? layer.bias->grad : nullptr);
    });
    const Matrix grad_x = layer.grad_x.view();
    product(layer, "backward data", [&] { linear_backward_data(exec, shards, grad, layer.weight->value, grad_x); });
    grad = grad_x;
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
    total += 2.0 * as_double(lc_.geometry.local_rows()) * as_double(layer.in * layer.out);
  return total;
}

}  // namespace simclr
