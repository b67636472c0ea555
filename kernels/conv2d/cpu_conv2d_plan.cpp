#include "kernels/conv2d/cpu_conv2d_plan.h"

#include <algorithm>
#include <string_view>

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

// The maps and weights of a convolution, as the library computes it by im2col and a matrix product: plain layouts.
onednn::ConvolutionArgs plain(const onednn::ConvolutionArgs& blocked) {
  onednn::ConvolutionArgs args = blocked;
  args.src = {blocked.src.dims(), blocked.src.data_type(), Format::nchw};
  args.dst = {blocked.dst.dims(), blocked.dst.data_type(), Format::nchw};
  args.weights = {blocked.weights.dims(), blocked.weights.data_type(), Format::oihw};
  return args;
}

bool is_reference_code(std::string_view implementation) {
  return implementation.starts_with("ref");
}

// How a convolution is made: by which algorithm, and whether the library's reference code will do.
struct Attempt {
  CpuAlgorithm algorithm = CpuAlgorithm::kDirect;
  bool reference_will_do = true;
};

// What describe(algorithm) makes, or nothing where the library has no such convolution.
template <typename Describe>
auto if_there(const Attempt& attempt, const Describe& describe) {
  std::optional<decltype(describe(dnnl::algorithm::convolution_direct))> pd;
  if (attempt.algorithm == CpuAlgorithm::kDirect || attempt.algorithm == CpuAlgorithm::kGemm) {
    pd = describe(dnnl::algorithm::convolution_direct);
    if (!attempt.reference_will_do && is_reference_code(pd->impl_info_str())) pd.reset();
    return pd;
  }
  try {
    pd = describe(dnnl::algorithm::convolution_winograd);
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_unimplemented) throw;
  }
  return pd;
}

// The first candidate that make() finds in the library. Reference code is taken only where nothing is left to try.
template <typename Make>
CpuAlgorithm first_of(const Conv2dParams& p, const std::vector<CpuAlgorithm>& candidates, const Make& make) {
  for (size_t i = 0; i < candidates.size(); ++i)
    if (make(Attempt{candidates[i], i + 1 == candidates.size()})) return candidates[i];
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
    return if_there({CpuAlgorithm::kWinograd},
                    [&](dnnl::algorithm algorithm) {
                      return onednn::describe_forward(onednn::cpu_engine(), dnnl::prop_kind::forward_training,
                                                      algorithm, args, {});
                    })
        .has_value();
  }();
  return has;
}

// The plain copies of input and output that kGemm works on; empty for the others.
void set_plain(CpuAlgorithm algorithm, const memory::desc& input, const memory::desc& output, memory::desc& plain_input,
               memory::desc& plain_output) {
  if (algorithm == CpuAlgorithm::kGemm) plain_input = input, plain_output = output;
}

// x to y, or, with weights turned and maps changed over, grad_y to grad_x. False where the library has none.
// For inference the library takes weights that are transformed already.
bool make_forward(const onednn::ConvolutionArgs& blocked, const dnnl::primitive_attr& attr, const Attempt& attempt,
                  CpuConvolution& convolution, std::string& name) {
  const onednn::ConvolutionArgs args = attempt.algorithm == CpuAlgorithm::kGemm ? plain(blocked) : blocked;
  const bool shared = attempt.algorithm == CpuAlgorithm::kWinogradShared;
  const auto kind = shared ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const auto pd = if_there(attempt, [&](dnnl::algorithm by) {
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
                 .scratch_bytes = pd->scratchpad_desc().get_size(),
                 .plain_input = {},
                 .plain_output = {}};
  set_plain(attempt.algorithm, args.src, args.dst, convolution.plain_input, convolution.plain_output);
  name = pd->impl_info_str();
  return true;
}

// A backward pass asks for a forward one of the same shape, whatever computes that.
auto forward_hint(const onednn::ConvolutionArgs& args, const dnnl::primitive_attr& attr) {
  return onednn::describe_forward(onednn::cpu_engine(), dnnl::prop_kind::forward_training,
                                  dnnl::algorithm::convolution_direct, args, attr);
}

bool make_backward_data(const onednn::ConvolutionArgs& blocked, const dnnl::primitive_attr& attr,
                        const Attempt& attempt, CpuConvolution& convolution, std::string& name) {
  const onednn::ConvolutionArgs args = attempt.algorithm == CpuAlgorithm::kGemm ? plain(blocked) : blocked;
  const auto hint = forward_hint(args, attr);
  const auto pd = if_there(attempt, [&](dnnl::algorithm by) {
    return onednn::describe_backward_data(onednn::cpu_engine(), by, args, attr, hint);
  });
  if (!pd) return false;
  convolution = {.primitive = dnnl::convolution_backward_data(*pd),
                 .input = DNNL_ARG_DIFF_DST,
                 .output = DNNL_ARG_DIFF_SRC,
                 .weights = pd->weights_desc(),
                 .transformed = {},
                 .scratch_bytes = pd->scratchpad_desc().get_size(),
                 .plain_input = {},
                 .plain_output = {}};
  set_plain(attempt.algorithm, args.dst, args.src, convolution.plain_input, convolution.plain_output);
  name = pd->impl_info_str();
  return true;
}

bool make_backward_weights(const onednn::ConvolutionArgs& blocked, const dnnl::primitive_attr& attr,
                           const Attempt& attempt, CpuBackwardWeights& convolution, std::string& name) {
  const onednn::ConvolutionArgs args = attempt.algorithm == CpuAlgorithm::kGemm ? plain(blocked) : blocked;
  onednn::ConvolutionArgs of_hint = args;
  of_hint.weights = {args.weights.dims(), args.src.data_type(),
                     attempt.algorithm == CpuAlgorithm::kGemm ? Format::oihw : Format::any};
  const auto hint = forward_hint(of_hint, attr);
  const auto pd = if_there(attempt, [&](dnnl::algorithm by) {
    return onednn::describe_backward_weights(onednn::cpu_engine(), by, args, attr, hint);
  });
  if (!pd) return false;
  convolution = {.primitive = dnnl::convolution_backward_weights(*pd),
                 .grad_weights = pd->diff_weights_desc(),
                 .scratch_bytes = pd->scratchpad_desc().get_size(),
                 .plain_x = {},
                 .plain_y = {}};
  set_plain(attempt.algorithm, args.src, args.dst, convolution.plain_x, convolution.plain_y);
  name = pd->impl_info_str();
  return true;
}

size_t with_copies(size_t own, const memory::desc& first, const memory::desc& second) {
  return round_up_256(own) + round_up_256(first.get_size()) + second.get_size();
}

}  // namespace

CpuConv2dPlan::CpuConv2dPlan(const Conv2dParams& p, DataType stored, const std::string& choice)
    : Conv2dPlan(p),
      library_in(p.input_is_images ? p.in_channels : std::max(p.in_channels, channel_block())),
      rounds_images(p.input_is_images && stored == DataType::kBfloat16) {
  const onednn::SingleThreadScope single;
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
  const CpuCandidates candidates =
      choice.empty() ? candidates_of(p, stored, library_has_winograd()) : candidates_of(p, choice);

  algorithms_[0] = first_of(p, candidates[0],
                            [&](const Attempt& attempt) { return make_forward(args, attr, attempt, forward, names); });
  std::string name;
  if (!p.input_is_images) {
    algorithms_[1] = first_of(p, candidates[1], [&](const Attempt& attempt) {
      if (attempt.algorithm != CpuAlgorithm::kWinogradShared)
        return make_backward_data(args, attr, attempt, backward_data, name);
      if (!is_winograd_shape(p)) return false;
      onednn::ConvolutionArgs turned = args;
      turned.src = y, turned.dst = x;
      turned.weights = {{library_in, p.out_channels, p.kernel, p.kernel}, type, Format::any};
      return make_forward(turned, attr, attempt, backward_data, name);
    });
    names += ", " + name;
  }
  args.weights = {weight_dims, memory::data_type::f32, Format::any};  // a gradient is float32 in every precision
  algorithms_[2] = first_of(p, candidates[2], [&](const Attempt& attempt) {
    return make_backward_weights(args, attr, attempt, backward_weights, name);
  });
  names += ", " + name;
}

size_t thread_bytes(const CpuConvolution& c) {
  return with_copies(c.scratch_bytes, c.plain_input, c.plain_output);
}

size_t thread_bytes(const CpuBackwardWeights& c) {
  return with_copies(c.scratch_bytes, c.plain_x, c.plain_y);
}

size_t CpuConv2dPlan::grad_stride() const {
  return round_up_256(backward_weights.grad_weights.get_size());
}

ScratchNeed CpuConv2dPlan::scratch() const {
  const size_t packed =
      std::max(forward.weights.get_size(), params().input_is_images ? 0 : backward_data.weights.get_size());
  return {
      .workspace_bytes = round_up_256(padded_bytes()) + round_up_256(image_bytes()) +
                         std::max(packed, grad_stride() * params().shards),
      .thread_bytes = std::max({thread_bytes(forward), thread_bytes(backward_data), thread_bytes(backward_weights)})};
}

}  // namespace simclr::conv2d
