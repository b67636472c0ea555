// The plan of a layer's three convolutions on oneDNN: primitives for one shard and one thread, on nChw16c / nChw8c,
// each by the algorithm that was asked for.
#pragma once

#include <optional>
#include <string>

#include "kernels/common/onednn.h"
#include "kernels/common/winograd_layout.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/cpu_conv2d_choice.h"

namespace simclr::conv2d {

// A convolution with weights, forward or backward data, for one shard.
struct CpuConvolution {
  dnnl::primitive primitive;
  int input = 0, output = 0;  // the library's names of those arguments
  dnnl::memory::desc weights;
  std::optional<WinogradLayout> transformed;  // of the weights, where we transform them
  size_t scratch_bytes = 0;
  dnnl::memory::desc plain_input, plain_output;  // kGemm: NCHW copies that the primitive works on; else empty
};

// The gradient of a shard's weights.
struct CpuBackwardWeights {
  dnnl::primitive primitive;
  dnnl::memory::desc grad_weights;
  size_t scratch_bytes = 0;
  dnnl::memory::desc plain_x, plain_y;  // kGemm, as above
};

// Scratch of one thread: the primitive's own, then the plain copies.
size_t thread_bytes(const CpuConvolution& convolution);
size_t thread_bytes(const CpuBackwardWeights& convolution);

class CpuConv2dPlan final : public Conv2dPlan {
 public:
  // stored: what feature maps are stored as and weights packed as. choice: see make_conv2d_plan().
  CpuConv2dPlan(const Conv2dParams& params, DataType stored, const std::string& choice);

  // The library has no fast kernel for fewer input channels than a block: it gets a whole block, whose padding is zero in x,
  // and the weights get zeros to match.
  const int64_t library_in;
  bool pads_weights() const { return library_in != params().in_channels; }
  size_t padded_bytes() const { return pads_weights() ? plain_weights.get_size() : 0; }
  // Images come as float32: the library's are a copy in bfloat16.
  const bool rounds_images;
  size_t image_bytes() const { return rounds_images ? x.get_size() * params().shards : 0; }

  // Weights as the library takes them (forward, backward data) or one packed gradient per shard share the workspace,
  // after the padded plain weights and the rounded images where there are any.
  size_t grad_stride() const;
  ScratchNeed scratch() const override;
  std::string describe() const override { return names; }
  std::string choice() const override { return choice_text(params(), algorithms_); }

  CpuConvolution forward, backward_data;
  CpuBackwardWeights backward_weights;
  dnnl::memory::desc x, y, plain_weights;
  std::string names;

 private:
  CpuAlgorithms algorithms_ = {};
};

inline size_t round_up_256(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace simclr::conv2d
