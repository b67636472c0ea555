#include "kernels/conv2d/cpu_conv2d_plan.h"

#include <algorithm>

#include "kernels/common/views.h"
#include "onednn_create.h"
#include "onednn_winograd.h"

namespace simclr::conv2d {
namespace {

using dnnl::memory;
using Format = memory::format_tag;

memory::desc activation_desc(memory::data_type type, int64_t samples, int64_t channels, int64_t height, int64_t width) {
  return {{samples, channels, height, width}, type, channel_block() == 16 ? Format::nChw16c : Format::nChw8c};
}

// What describe(algorithm) makes, or nothing where the library has no such Winograd convolution.
template <typename Describe>
auto if_there(CpuAlgorithm algorithm, const Describe& describe) {
  std::optional<decltype(describe(dnnl::algorithm::convolution_direct))> pd;
  if (algorithm == CpuAlgorithm::kDirect) {
    pd = describe(dnnl::algorithm::convolution_direct);
    return pd;
  }
  try {
    pd = describe(dnnl::algorithm::convolution_winograd);
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_unimplemented) throw;
  }
  return pd;
}

// The first candidate that make() finds in the library.
template <typename Make>
CpuAlgorithm first_of(const Conv2dParams& p, const std::vector<CpuAlgorithm>& candidates, const Make& make) {
  for (const CpuAlgorithm algorithm : candidates)
    if (make(algorithm)) return algorithm;
  fail(ExitCode::kDevice,
       "oneDNN {}.{} has no Winograd convolution of {} to {} channels, window {}, stride {}, on this processor, unlike "
       "that of rank 0; use hosts of one kind, or model.convolution: direct",
       dnnl::version()->major, dnnl::version()->minor, p.in_channels, p.out_channels, p.kernel, p.stride);
}

// oneDNN has it for AVX-512 up to version 2.x, and nowhere from 3.0 on.
bool library_has_winograd() {
  static const bool has = [] {
    const onednn::SingleThreadScope single;
    constexpr int64_t kSize = 8;
    const memory::desc map = activation_desc(memory::data_type::f32, 1, channel_block(), kSize, kSize);
    const memory::desc weights({channel_block(), channel_block(), 3, 3}, memory::data_type::f32, Format::any);
    const onednn::ConvolutionArgs args{map, weights, map, {1, 1}, {1, 1}, {1, 1}};
    return if_there(CpuAlgorithm::kWinograd,
                    [&](dnnl::algorithm algorithm) {
                      return onednn::describe_forward(onednn::cpu_engine(), dnnl::prop_kind::forward_training,
                                                      algorithm, args, {});
                    })
        .has_value();
  }();
  return has;
}

// x to y, or, with weights turned and maps changed over, grad_y to grad_x. False where the library has none.
// For inference the library takes weights that are transformed already.
bool make_forward(const onednn::ConvolutionArgs& args, const dnnl::primitive_attr& attr, CpuAlgorithm algorithm,
                  CpuConvolution& convolution, std::string& name) {
  const bool shared = algorithm == CpuAlgorithm::kWinogradShared;
  const auto kind = shared ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const auto pd = if_there(algorithm, [&](dnnl::algorithm by) {
    return onednn::describe_forward(onednn::cpu_engine(), kind, by, args, attr);
  });
  if (!pd) return false;
  const auto layout = shared ? onednn::winograd_layout(pd->weights_desc()) : std::nullopt;
  if (shared && !layout) return false;
  convolution = {.primitive = dnnl::convolution_forward(*pd),
                 .input = DNNL_ARG_SRC,
                 .output = DNNL_ARG_DST,
                 .weights = pd->weights_desc(),
                 .transformed = layout,
                 .scratch_bytes = pd->scratchpad_desc().get_size()};
  name = pd->impl_info_str();
  return true;
}

}  // namespace

CpuConv2dPlan::CpuConv2dPlan(const Conv2dParams& p, DataType stored, const std::string& choice)
    : Conv2dPlan(p),
      library_in(p.input_is_images ? p.in_channels : std::max(p.in_channels, channel_block())),
      rounds_images(p.input_is_images && stored == DataType::kBfloat16) {
  const onednn::SingleThreadScope single;
  const auto& engine = onednn::cpu_engine();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);

  const memory::dims weight_dims{p.out_channels, library_in, p.kernel, p.kernel};
  const auto type = stored == DataType::kBfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
  plain_weights = {weight_dims, memory::data_type::f32, Format::oihw};
  x = p.input_is_images ? memory::desc({p.samples, p.in_channels, p.height, p.width}, type, Format::nchw)
                        : activation_desc(type, p.samples, library_in, p.height, p.width);
  y = activation_desc(type, p.samples, p.out_channels, p.out_height(), p.out_width());
  // The library asks for the padding that is used on the right and bottom, which is less when the stride leaves rows
  // over.
  const int64_t right_h = (p.out_height() - 1) * p.stride + p.kernel - p.height - p.padding;
  const int64_t right_w = (p.out_width() - 1) * p.stride + p.kernel - p.width - p.padding;
  onednn::ConvolutionArgs args{
      x, {weight_dims, type, Format::any}, y, {p.stride, p.stride}, {p.padding, p.padding}, {right_h, right_w}};
  // Backward passes ask for a forward one of the same shape, whatever computes that.
  const auto hint = onednn::describe_forward(engine, dnnl::prop_kind::forward_training,
                                             dnnl::algorithm::convolution_direct, args, attr);
  const CpuCandidates candidates =
      choice.empty() ? candidates_of(p, stored, library_has_winograd()) : candidates_of(p, choice);

  algorithms_[0] = first_of(
      p, candidates[0], [&](CpuAlgorithm algorithm) { return make_forward(args, attr, algorithm, forward, names); });

  if (!p.input_is_images) {
    std::string name;
    algorithms_[1] = first_of(p, candidates[1], [&](CpuAlgorithm algorithm) {
      if (algorithm == CpuAlgorithm::kWinogradShared) {
        if (!is_winograd_shape(p)) return false;
        onednn::ConvolutionArgs turned = args;
        turned.src = y, turned.dst = x;
        turned.weights = {{library_in, p.out_channels, p.kernel, p.kernel}, type, Format::any};
        return make_forward(turned, attr, algorithm, backward_data, name);
      }
      const auto pd = if_there(
          algorithm, [&](dnnl::algorithm by) { return onednn::describe_backward_data(engine, by, args, attr, hint); });
      if (!pd) return false;
      backward_data = {.primitive = dnnl::convolution_backward_data(*pd),
                       .input = DNNL_ARG_DIFF_DST,
                       .output = DNNL_ARG_DIFF_SRC,
                       .weights = pd->weights_desc(),
                       .transformed = {},
                       .scratch_bytes = pd->scratchpad_desc().get_size()};
      name = pd->impl_info_str();
      return true;
    });
    names += ", " + name;
  }
  args.weights = {weight_dims, memory::data_type::f32, Format::any};  // a gradient is float32 in every precision
  algorithms_[2] = first_of(p, candidates[2], [&](CpuAlgorithm algorithm) {
    const auto pd = if_there(
        algorithm, [&](dnnl::algorithm by) { return onednn::describe_backward_weights(engine, by, args, attr, hint); });
    if (!pd) return false;
    backward_weights = dnnl::convolution_backward_weights(*pd);
    grad_weights = pd->diff_weights_desc();
    weights_scratch = pd->scratchpad_desc().get_size();
    names += std::string(", ") + pd->impl_info_str();
    return true;
  });
}

size_t CpuConv2dPlan::grad_stride() const {
  return round_up_256(grad_weights.get_size());
}

ScratchNeed CpuConv2dPlan::scratch() const {
  const size_t packed =
      std::max(forward.weights.get_size(), params().input_is_images ? 0 : backward_data.weights.get_size());
  return {.workspace_bytes = round_up_256(padded_bytes()) + round_up_256(image_bytes()) +
                             std::max(packed, grad_stride() * static_cast<size_t>(params().shards)),
          .thread_bytes = std::max({forward.scratch_bytes, backward_data.scratch_bytes, weights_scratch})};
}

}  // namespace simclr::conv2d
