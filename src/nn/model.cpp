#include "src/nn/model.h"

#include <fmt/format.h>

namespace simclr {

Model::Model(Context& context, Collectives& collectives, const ShardGeometry& geometry, const ModelSettings& settings,
             int64_t image_size, uint64_t seed, const PlanChoices& plans)
    : lc_{context, collectives, store_, arena_, geometry, settings.batch_norm, plans},
      settings_(settings),
      encoder_(lc_, settings.encoder, image_size),
      projector_(lc_, settings.projector, encoder_.out_features(), encoder_.grad_h_read_at()) {
  store_.allocate(context);
  arena_.allocate(context);
  encoder_.initialize(seed);
  projector_.initialize(seed);
}

ConstMatrix Model::forward(ConstImages x, const BetweenLayers& between) {
  h_ = encoder_.forward(Mode::kTrain, x, between);
  return projector_.forward(Mode::kTrain, h_);
}

void Model::backward(ConstMatrix grad_z, const GradientsReady& ready) {
  const ConstMatrix grad_h = projector_.backward(h_, grad_z);
  ready(projector_.first_parameter());
  encoder_.backward(grad_h, ready);
}

void Model::update_running_statistics(const int* skip) {
  const ProfileSpan span(lc_.context.profiler(), {OpKind::kBatchNorm, "batch norm", "running statistics"});
  encoder_.update_running_statistics(skip);
  projector_.update_running_statistics(skip);
}

ConstMatrix Model::encode(ConstImages x) {
  return encoder_.forward(Mode::kEvaluate, x);
}

ConstMatrix Model::project(ConstMatrix h) {
  return projector_.forward(Mode::kEvaluate, h);
}

double Model::step_flops() const {
  return 3.0 * (encoder_.forward_flops() + projector_.forward_flops());
}

std::string Model::describe() const {
  const auto& e = settings_.encoder;
  const auto& p = settings_.projector;
  return fmt::format("ResNet-{} width {} ({} stem), representation {}; projector of {} layers to {}{}; {} parameters",
                     e.depth, e.width, e.stem == Stem::kCifar ? "cifar" : "imagenet", representation_size(), p.layers,
                     p.output, p.batch_norm ? " with batch norm" : "", store_.element_count());
}

}  // namespace simclr
