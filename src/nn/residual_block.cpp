#include "src/nn/residual_block.h"

#include <fmt/format.h>

#include "kernels/add/add.h"
#include "src/nn/initializer.h"

namespace simclr {
namespace {

// The convolutions of a block in their order; heights and widths are filled in as they follow from each other.
std::vector<ConvShape> convolutions_of(const ResidualBlock::Shape& s) {
  if (s.kind == ResidualBlock::Kind::kBasic)
    return {{.in = s.in, .out = s.planes, .stride = s.stride}, {.in = s.planes, .out = s.planes}};
  return {{.in = s.in, .out = s.planes, .kernel = 1, .padding = 0},
          {.in = s.planes, .out = s.planes, .stride = s.stride},
          {.in = s.planes, .out = s.out(), .kernel = 1, .padding = 0}};
}

Activation without_data(ConstActivation x) {
  return {nullptr, x.shards, x.samples, x.channels, x.height, x.width, x.type};
}

}  // namespace

ResidualBlock::Row ResidualBlock::make_row(const LayerContext& lc, const std::string& conv, const std::string& bn,
                                           const ConvShape& shape) {
  ConvLayer layer(lc, conv, shape);
  const int64_t h = layer.out_height(), w = layer.out_width();
  return {std::move(layer), BatchNormLayer(lc, bn, shape.out, h, w), ActivationBuffer(lc, shape.out, h, w),
          ActivationBuffer(lc, shape.out, h, w)};
}

ResidualBlock::ResidualBlock(const LayerContext& lc, const std::string& name, const Shape& s) : context_(&lc.context) {
  int64_t height = s.height, width = s.width;
  for (ConvShape shape : convolutions_of(s)) {
    shape.height = height;
    shape.width = width;
    const size_t number = rows_.size() + 1;
    const ConvLayer& conv = rows_
                                .emplace_back(make_row(lc, fmt::format("{}.conv{}", name, number),
                                                       fmt::format("{}.bn{}", name, number), shape))
                                .conv;
    height = conv.out_height();
    width = conv.out_width();
  }
  if (s.stride != 1 || s.in != s.out()) {
    downsample_.emplace(make_row(lc, name + ".downsample.0", name + ".downsample.1",
                                 {.in = s.in,
                                  .out = s.out(),
                                  .height = s.height,
                                  .width = s.width,
                                  .kernel = 1,
                                  .stride = s.stride,
                                  .padding = 0}));
  }
}

const float* ResidualBlock::shortcut(Mode mode, ConstActivation x) {
  if (!downsample_) return x.data;
  downsample_->conv.forward(x, downsample_->c.view());
  downsample_->bn.forward(mode, downsample_->c.view(), {}, downsample_->y.view());
  return downsample_->y.view().data;
}

ConstActivation ResidualBlock::forward(Mode mode, ConstActivation x) {
  ConstActivation h = x;
  for (Row& row : rows_) {
    const bool last = &row == &rows_.back();
    row.conv.forward(h, row.c.view());
    const float* residual = last ? shortcut(mode, x) : nullptr;
    row.bn.forward(mode, row.c.view(), {.relu = true, .residual = residual}, row.y.view());
    h = row.y.view();
  }
  return h;
}

void ResidualBlock::backward(ConstActivation x, GradientBuffers& gradients) {
  const Activation y = rows_.back().y.view(), x_shape = without_data(x);
  const Activation grad_y = gradients.current(y);  // after the last bn: dL/d(sum before the last relu)
  for (size_t i = rows_.size(); i-- > 0;) {
    Row& row = rows_[i];
    const Activation h = row.y.view(), grad_c = gradients.second(h);
    if (i + 1 == rows_.size())  // y = relu(bn(c) + shortcut)
      row.bn.backward(grad_y, row.c.view(), y.data, grad_y.data, grad_c);
    else  // h = relu(bn(c))
      row.bn.backward(gradients.third(h), row.c.view(), h.data, nullptr, grad_c);
    // c = conv(input); the input's gradient takes the place of the one that was used just now
    const ConstActivation input = i > 0 ? ConstActivation(rows_[i - 1].y.view()) : x;
    row.conv.backward_weights(input, grad_c);
    row.conv.backward_data(grad_c, gradients.third(without_data(input)));
  }
  const Activation grad_x = gradients.third(x_shape);
  // shortcut = x, or bn(conv(x))
  if (downsample_) {
    const Activation grad_c = gradients.second(y);
    downsample_->bn.backward(grad_y, downsample_->c.view(), nullptr, nullptr, grad_c);
    downsample_->conv.backward_weights(x, grad_c);
    const Activation grad_shortcut = gradients.current(x_shape);  // dL/dy is used up
    downsample_->conv.backward_data(grad_c, grad_shortcut);
    add_to(context_->exec(), grad_x.elements(), grad_shortcut.data, grad_x.data, x.type);
  } else {
    add_to(context_->exec(), grad_x.elements(), grad_y.data, grad_x.data, x.type);
  }
  gradients.make_third_current();
}

void ResidualBlock::update_running_statistics(const int* skip) {
  for (Row& row : rows_) row.bn.update_running_statistics(skip);
  if (downsample_) downsample_->bn.update_running_statistics(skip);
}

void ResidualBlock::initialize(uint64_t seed, bool zero_last_batch_norm) {
  const auto initialize_row = [&](Row& row, float gamma) {
    initialize_kaiming_normal(*context_, row.conv.weight(), seed);
    row.bn.initialize(gamma);
  };
  for (Row& row : rows_) initialize_row(row, zero_last_batch_norm && &row == &rows_.back() ? 0.0F : 1.0F);
  if (downsample_) initialize_row(*downsample_, 1.0F);
}

void ResidualBlock::want(GradientBuffers& gradients) const {
  for (const Row& row : rows_) gradients.want(row.y.view());
}

std::vector<const ConvLayer*> ResidualBlock::convolutions() const {
  std::vector<const ConvLayer*> all;
  for (const Row& row : rows_) all.push_back(&row.conv);
  if (downsample_) all.push_back(&downsample_->conv);
  return all;
}

double ResidualBlock::forward_flops() const {
  double total = 0;
  for (const ConvLayer* conv : convolutions()) total += conv->plan().params().forward_flops();
  return total;
}

}  // namespace simclr
