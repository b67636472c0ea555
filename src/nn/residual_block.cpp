#include "src/nn/residual_block.h"

#include <fmt/format.h>

#include "kernels/elementwise/elementwise.h"
#include "src/nn/initializer.h"

namespace simclr {
namespace {

// The convolutions of a block in order, without heights and widths: each follows from the one before.
std::vector<ConvShape> convolutions_of(const ResidualBlock::Shape& s) {
  if (s.kind == ResidualBlock::Kind::kBasic)
    return {{.in = s.in, .out = s.planes, .stride = s.stride}, {.in = s.planes, .out = s.planes}};
  return {{.in = s.in, .out = s.planes, .kernel = 1, .padding = 0},
          {.in = s.planes, .out = s.planes, .stride = s.stride},
          {.in = s.planes, .out = s.out(), .kernel = 1, .padding = 0}};
}

}  // namespace

// Backward writes the gradient of c into c: bn's backward reads each element before it writes the same one.
ResidualBlock::Row ResidualBlock::make_row(const LayerContext& lc, const std::string& conv, const std::string& bn,
                                           const ConvShape& shape) {
  ConvLayer layer(lc, conv, shape);
  const int64_t h = layer.out_height(), w = layer.out_width();
  Row row{.conv = std::move(layer),
          .bn = BatchNormLayer(lc, bn, shape.out, h, w),
          .c = {},
          .y = {},
          .grad_y = {},
          .conv_moment = lc.arena.next(),
          .bn_moment = lc.arena.next()};
  row.c = ActivationBuffer(lc, shape.out, h, w, {row.conv_moment, ActivationArena::backward_of(row.conv_moment)});
  return row;
}

ResidualBlock::ResidualBlock(const LayerContext& lc, const std::string& name, const Shape& s)
    : context_(&lc.context), shortcut_moment_(lc.arena.next()) {
  using Arena = ActivationArena;
  int64_t height = s.height, width = s.width;
  for (ConvShape shape : convolutions_of(s)) {
    shape.height = height;
    shape.width = width;
    const size_t number = rows_.size() + 1;
    Row& row = rows_.emplace_back(
        make_row(lc, fmt::format("{}.conv{}", name, number), fmt::format("{}.bn{}", name, number), shape));
    if (number > 1) {  // the gradient of this convolution's input
      const Row& before = rows_[number - 2];
      rows_[number - 2].grad_y = ActivationBuffer(
          lc, shape.in, height, width, {Arena::backward_of(row.conv_moment), Arena::backward_of(before.bn_moment)});
    }
    height = row.conv.out_height();
    width = row.conv.out_width();
    // From conv_moment on: the shortcut is written into the last row's y before that row's bn.
    row.y = ActivationBuffer(lc, shape.out, height, width, {row.conv_moment, Arena::backward_of(row.bn_moment)});
  }
  if (s.stride != 1 || s.in != s.out()) {
    // Forward computes the shortcut before the last bn, backward after all rows: its moment is before theirs.
    const Arena::Lifetime maps{shortcut_moment_, Arena::backward_of(shortcut_moment_)};
    const ConvShape shape{.in = s.in,
                          .out = s.out(),
                          .height = s.height,
                          .width = s.width,
                          .kernel = 1,
                          .stride = s.stride,
                          .padding = 0};
    ConvLayer conv(lc, name + ".downsample.0", shape);
    downsample_.emplace(Row{.conv = std::move(conv),
                            .bn = BatchNormLayer(lc, name + ".downsample.1", shape.out, height, width),
                            .c = ActivationBuffer(lc, shape.out, height, width, maps),
                            .y = {},
                            .grad_y = {}});
    grad_shortcut_ = ActivationBuffer(lc, s.in, s.height, s.width, {maps.last, maps.last});
  }
}

ConstElements ResidualBlock::shortcut(Mode mode, ConstActivation x, Activation y) {
  if (!downsample_) return x.data;
  downsample_->conv.forward(x, downsample_->c.view());
  downsample_->bn.forward(mode, downsample_->c.view(), {}, y);
  return y.data;
}

ConstActivation ResidualBlock::forward(Mode mode, ConstActivation x) {
  ConstActivation h = x;
  for (Row& row : rows_) {
    const bool last = &row == &rows_.back();
    const Activation c = row.c.view(), y = row.y.view();
    row.conv.forward(h, c);
    const ConstElements residual = last ? shortcut(mode, x, y) : ConstElements();  // may be y itself
    row.bn.forward(mode, c, {.relu = true, .residual = residual}, y);
    h = y;
  }
  return h;
}

void ResidualBlock::backward(ConstActivation x, Activation grad_y, Activation grad_x) {
  for (size_t i = rows_.size(); i-- > 0;) {
    Row& row = rows_[i];
    const Activation c = row.c.view(), h = row.y.view(), grad_c = c;
    if (i + 1 == rows_.size())  // y = relu(bn(c) + shortcut); grad_y: now dL/d(sum before the relu)
      row.bn.backward(grad_y, c, h.data, grad_y.data, grad_c);
    else  // h = relu(bn(c))
      row.bn.backward(row.grad_y.view(), c, h.data, {}, grad_c);
    // c = conv(input)
    row.conv.backward_weights(i > 0 ? ConstActivation(rows_[i - 1].y.view()) : x, grad_c);
    row.conv.backward_data(grad_c, i > 0 ? rows_[i - 1].grad_y.view() : grad_x);
  }
  // shortcut = x, or bn(conv(x))
  if (downsample_) {
    const Activation c = downsample_->c.view(), grad_c = c;
    downsample_->bn.backward(grad_y, c, {}, {}, grad_c);
    downsample_->conv.backward_weights(x, grad_c);
    downsample_->conv.backward_data(grad_c, grad_shortcut_.view());
    add_shortcut(grad_shortcut_.view(), grad_x);
  } else {
    add_shortcut(grad_y, grad_x);
  }
}

// Forward's add is part of the last batch norm.
void ResidualBlock::add_shortcut(ConstActivation grad_shortcut, Activation grad_x) const {
  const ProfileSpan span(context_->profiler(), {OpKind::kElementwise, rows_.back().bn.name(), "backward add"},
                         [&] { return Work{.bytes = 3 * bytes_of(grad_x)}; });
  add_to(context_->exec(), grad_x.elements(), grad_shortcut.data, grad_x.data);
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
