// The plan of a layer's three convolutions on oneDNN: primitives for one shard and one thread, on nChw16c / nChw8c,
// each by the algorithm that was asked for.
#pragma once

#include <array>
#include <string>

#include "kernels/common/onednn.h"
#include "kernels/conv2d/conv2d.h"

namespace simclr::conv2d {

class CpuConv2dPlan final : public Conv2dPlan {
 public:
  // stored: what feature maps are stored as and weights packed as. choice: see make_conv2d_plan().
  CpuConv2dPlan(const Conv2dParams& params, DataType stored, const std::string& choice);

  // The library has no fast kernel for fewer input channels than a block: it is told of a whole block, whose padding is
  // zero in x, and the weights get zeros to match.
  const int64_t library_in;
  bool pads_weights() const { return library_in != params().in_channels; }
  size_t padded_bytes() const { return pads_weights() ? plain_weights.get_size() : 0; }
  // Pictures come as float32: the library's are a copy in bfloat16.
  const bool rounds_images;
  size_t image_bytes() const { return rounds_images ? x.get_size() * static_cast<size_t>(params().shards) : 0; }

  // Packed weights (forward, backward data) or one packed gradient per shard share the workspace, after the padded
  // plain weights and the rounded pictures where there are any.
  size_t grad_stride() const;
  ScratchNeed scratch() const override;
  std::string describe() const override { return names; }
  std::string choice() const override;  // "winograd; winograd; direct", without the second for pictures

  dnnl::convolution_forward forward;
  dnnl::convolution_backward_data backward_data;
  dnnl::convolution_backward_weights backward_weights;
  dnnl::memory::desc x, y, plain_weights, forward_weights, data_weights, grad_weights;
  size_t forward_scratch = 0, data_scratch = 0, weights_scratch = 0;
  std::string names;

 private:
  std::array<bool, 3> by_winograd_ = {};  // forward, backward data, backward weights
};

inline size_t round_up_256(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace simclr::conv2d
