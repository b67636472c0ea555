#include "src/nn/conv_layer.h"

namespace simclr {
namespace {

// The plan recorded in the checkpoint that the run resumes from; null if there is none or the library no longer
// offers it. The caller compares the plans with those of the checkpoint and warns (state_io.cpp).
std::unique_ptr<Conv2dPlan> make_plan_as_before(const LayerContext& lc, const std::string& weight,
                                                const Conv2dParams& params) {
  const auto before = lc.plans.before.find(weight);
  if (before == lc.plans.before.end()) return nullptr;
  try {
    return make_conv2d_plan(lc.context.exec(), params, before->second);
  } catch (const Error&) {
    return nullptr;
  }
}

// Rank 0's plan on all ranks: rank 0 has read the checkpoint, and two GPUs of one model may rank cuDNN's plans
// differently.
std::unique_ptr<Conv2dPlan> make_shared_plan(const LayerContext& lc, const std::string& weight,
                                             const Conv2dParams& params) {
  auto plan = make_plan_as_before(lc, weight, params);
  if (!plan) plan = make_conv2d_plan(lc.context.exec(), params);
  const std::string choice = lc.plans.share(plan->choice());
  return choice == plan->choice() ? std::move(plan) : make_conv2d_plan(lc.context.exec(), params, choice);
}

}  // namespace

ConvLayer::ConvLayer(const LayerContext& lc, const std::string& name, const ConvShape& s)
    : context_(&lc.context),
      weight_(&lc.store.add(name + ".weight", {s.out, s.in, s.kernel, s.kernel}, GradientScope::kPerRank)),
      plan_(make_shared_plan(lc, weight_->name,
                             Conv2dParams{.shards = lc.geometry.local_shards,
                                          .samples = lc.geometry.samples(),
                                          .in_channels = s.in,
                                          .out_channels = s.out,
                                          .height = s.height,
                                          .width = s.width,
                                          .kernel = s.kernel,
                                          .stride = s.stride,
                                          .padding = s.padding,
                                          .input_is_images = s.input_is_images,
                                          .algorithm = lc.plans.algorithm})) {
  lc.context.reserve(plan_->scratch());
}

}  // namespace simclr
