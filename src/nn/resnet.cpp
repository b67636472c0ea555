#include "src/nn/resnet.h"

#include <fmt/format.h>

#include "kernels/pool/pool.h"
#include "src/nn/initializer.h"

namespace simclr {
namespace {

ConvShape stem_shape(const EncoderSettings& s, int64_t image_size) {
  ConvShape shape{.in = 3, .out = s.width, .height = image_size, .width = image_size, .input_is_images = true};
  if (s.stem == Stem::kImagenet) shape.kernel = 7, shape.stride = 2, shape.padding = 3;
  return shape;
}

}  // namespace

std::vector<int> resnet_blocks(int depth) {
  switch (depth) {
    case 10:
      return {1, 1, 1, 1};
    case 18:
      return {2, 2, 2, 2};
    case 34:
    case 50:
      return {3, 4, 6, 3};
    default:
      fail(ExitCode::kUsage, "model.encoder.depth: no ResNet with depth {}; choose 10, 18, 34 or 50", depth);
  }
}

ResNet::ResNet(const LayerContext& lc, const EncoderSettings& settings, int64_t image_size)
    : lc_(lc),
      settings_(settings),
      conv1_(lc, "conv1", stem_shape(settings, image_size)),
      bn1_(lc, "bn1", settings.width, conv1_.out_height(), conv1_.out_width()) {
  using Arena = ActivationArena;
  int64_t height = conv1_.out_height(), width = conv1_.out_width(), channels = settings.width;
  const Arena::Moment conv = lc.arena.next(), bn = lc.arena.next();
  c1_ = ActivationBuffer(lc, channels, height, width, {conv, Arena::backward_of(conv)});
  h1_ = ActivationBuffer(lc, channels, height, width, {bn, Arena::backward_of(bn)});
  Arena::Moment stem_ends = bn;
  if (settings.stem == Stem::kImagenet) {
    stem_ends = lc.arena.next();
    grad_h1_ = ActivationBuffer(lc, channels, height, width, {Arena::backward_of(stem_ends), Arena::backward_of(bn)});
    height = max_pool_out(height);
    width = max_pool_out(width);
    pooled_ = ActivationBuffer(lc, channels, height, width, {stem_ends, Arena::backward_of(stem_ends)});
    pool_winners_ = lc.context.allocate_elements<uint8_t>(pooled_.view().elements());
  }
  Arena::Moment grad_read = Arena::backward_of(stem_ends);  // last read of dL/d(input of the next block)
  const auto counts = resnet_blocks(settings.depth);
  const auto kind = settings.depth < 50 ? ResidualBlock::Kind::kBasic : ResidualBlock::Kind::kBottleneck;
  for (size_t stage = 0; stage < counts.size(); ++stage) {
    for (int i = 0; i < counts[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const ResidualBlock::Shape shape{.kind = kind,
                                       .in = channels,
                                       .planes = settings.width << stage,
                                       .height = height,
                                       .width = width,
                                       .stride = stride};
      const auto& block = blocks_.emplace_back(lc, fmt::format("layer{}.{}", stage + 1, i), shape);
      grads_.emplace_back(lc, channels, height, width, Arena::Lifetime{block.grad_x_begins_at(), grad_read});
      grad_read = block.finished_at();
      channels = shape.out();
      height = (height - 1) / stride + 1;
      width = (width - 1) / stride + 1;
    }
  }
  average_moment_ = lc.arena.next();
  grads_.emplace_back(lc, channels, height, width, Arena::Lifetime{Arena::backward_of(average_moment_), grad_read});
  out_features_ = channels;
  // h is kept until backward: the projector's weight gradients read it.
  features_ = MatrixBuffer(lc, out_features_, {average_moment_, Arena::backward_of(average_moment_)});
}

ConstMatrix ResNet::forward(Mode mode, ConstImages x, const BetweenLayers& between) {
  images_ = x;
  block_inputs_.clear();
  conv1_.forward(x, c1_.view());
  bn1_.forward(mode, c1_.view(), {.relu = true}, h1_.view());
  ConstActivation current = h1_.view();
  if (settings_.stem == Stem::kImagenet) {
    const ProfileSpan span(lc_.context.profiler(), {OpKind::kElementwise, "maxpool", "forward"},
                           [&] { return Work{.bytes = bytes_of(h1_.view()) + bytes_of(pooled_.view())}; });
    max_pool_forward(lc_.context.exec(), h1_.view(), pooled_.view(), pool_winners_.as<uint8_t>().data());
    current = pooled_.view();
  }
  between();
  for (auto& block : blocks_) {
    block_inputs_.push_back(current);
    current = block.forward(mode, current);
    between();
  }
  const Matrix h = features_.view();
  const ProfileSpan span(lc_.context.profiler(), {OpKind::kElementwise, "avgpool", "forward"},
                         [&] { return Work{.bytes = bytes_of(current) + bytes_of(h)}; });
  global_average_pool_forward(lc_.context.exec(), current, h);
  return h;
}

void ResNet::backward(ConstMatrix grad_h, const GradientsReady& ready) {
  const Exec& exec = lc_.context.exec();
  {
    const Activation grad_y = grads_.back().view();
    const ProfileSpan span(lc_.context.profiler(), {OpKind::kElementwise, "avgpool", "backward"},
                           [&] { return Work{.bytes = bytes_of(grad_h) + bytes_of(grad_y)}; });
    global_average_pool_backward(exec, grad_h, grad_y);
  }
  for (size_t i = blocks_.size(); i-- > 0;) {
    blocks_[i].backward(block_inputs_[i], grads_[i + 1].view(), grads_[i].view());
    ready(blocks_[i].first_parameter());
  }
  Activation grad_h1 = grads_.front().view();
  if (settings_.stem == Stem::kImagenet) {
    const Activation grad_pooled = grad_h1;
    grad_h1 = grad_h1_.view();
    const ProfileSpan span(lc_.context.profiler(), {OpKind::kElementwise, "maxpool", "backward"},
                           [&] { return Work{.bytes = bytes_of(grad_h1) + bytes_of(grad_pooled)}; });
    max_pool_backward(exec, grad_pooled, pool_winners_.as<uint8_t>().data(), grad_h1);
  }
  const Activation c1 = c1_.view(), grad_c1 = c1;
  bn1_.backward(grad_h1, c1, h1_.view().data, {}, grad_c1);
  conv1_.backward_weights(images_, grad_c1);
  ready(conv1_.weight());
}

void ResNet::initialize(uint64_t seed) {
  initialize_kaiming_normal(lc_.context, conv1_.weight(), seed);
  bn1_.initialize(1.0F);
  for (auto& block : blocks_) block.initialize(seed, settings_.zero_init_residual);
}

void ResNet::update_running_statistics(const int* skip) {
  bn1_.update_running_statistics(skip);
  for (auto& block : blocks_) block.update_running_statistics(skip);
}

std::string ResNet::describe_plans() const {
  std::vector<const ConvLayer*> all = {&conv1_};
  for (const auto& block : blocks_)
    for (const ConvLayer* conv : block.convolutions()) all.push_back(conv);
  std::string text;
  for (const ConvLayer* conv : all)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", conv->weight().name, conv->plan().choice());
  return text;
}

double ResNet::forward_flops() const {
  double total = conv1_.plan().params().forward_flops();
  for (const auto& block : blocks_) total += block.forward_flops();
  return total;
}

}  // namespace simclr
