#include "src/nn/conv_layer.h"

namespace simclr {

ConvLayer::ConvLayer(const LayerContext& lc, const std::string& name, const ConvShape& s)
    : context_(&lc.context),
      weight_(&lc.store.add(name + ".weight", {s.out, s.in, s.kernel, s.kernel}, GradientScope::kPerRank)),
      plan_(make_conv2d_plan(lc.context.exec(), Conv2dParams{.shards = lc.geometry.local_shards,
                                                             .samples = lc.geometry.samples(),
                                                             .in_channels = s.in,
                                                             .out_channels = s.out,
                                                             .height = s.height,
                                                             .width = s.width,
                                                             .kernel = s.kernel,
                                                             .stride = s.stride,
                                                             .padding = s.padding,
                                                             .input_is_images = s.input_is_images})) {
  lc.context.reserve(plan_->scratch());
}

}  // namespace simclr
