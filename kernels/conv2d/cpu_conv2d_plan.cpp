#include "kernels/conv2d/cpu_conv2d_plan.h"

#include <algorithm>
#include <string_view>

#include "kernels/common/views.h"
#include "kernels/conv2d/winograd_table.h"
#include "onednn_create.h"

namespace simclr::conv2d {
namespace {

using dnnl::memory;
using Format = memory::format_tag;

constexpr std::string_view kBetween = "; ", kByWinograd = "winograd", kByDirect = "direct";

memory::desc activation_desc(memory::data_type type, int64_t samples, int64_t channels, int64_t height, int64_t width) {
  return {{samples, channels, height, width}, type, channel_block() == 16 ? Format::nChw16c : Format::nChw8c};
}

constexpr Pass kPasses[] = {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights};
enum class Wish { kDirect, kWinogradIfThere, kWinograd };
using Wishes = std::array<Wish, 3>;  // by Pass

bool is_unimplemented(const dnnl::error& e) {
  return e.status == dnnl_unimplemented;
}

[[noreturn]] void refuse_winograd(const Conv2dParams& p) {
  fail(ExitCode::kDevice,
       "oneDNN {}.{} has no Winograd convolution of {} to {} channels, window {}, stride {}, on this processor, unlike "
       "that of rank 0; use hosts of one kind, or model.convolution: direct",
       dnnl::version()->major, dnnl::version()->minor, p.in_channels, p.out_channels, p.kernel, p.stride);
}

// describe(algorithm) makes a primitive descriptor. by_winograd: what it was made for.
template <typename Describe>
auto describe_as_wished(const Conv2dParams& p, Wish wish, bool& by_winograd, const Describe& describe) {
  by_winograd = wish != Wish::kDirect;
  if (by_winograd) {
    try {
      return describe(dnnl::algorithm::convolution_winograd);
    } catch (const dnnl::error& e) {
      if (!is_unimplemented(e)) throw;
      if (wish == Wish::kWinograd) refuse_winograd(p);
      by_winograd = false;
    }
  }
  return describe(dnnl::algorithm::convolution_direct);
}

// oneDNN has it for AVX-512 up to version 2.x, and nowhere from 3.0 on.
bool library_has_winograd() {
  static const bool has = [] {
    const onednn::SingleThreadScope single;
    constexpr int64_t kSize = 8;
    const memory::desc map = activation_desc(memory::data_type::f32, 1, channel_block(), kSize, kSize);
    const memory::desc weights({channel_block(), channel_block(), 3, 3}, memory::data_type::f32, Format::any);
    try {
      onednn::describe_forward(onednn::cpu_engine(), dnnl::algorithm::convolution_winograd,
                               {map, weights, map, {1, 1}, {1, 1}, {1, 1}}, {});
      return true;
    } catch (const dnnl::error& e) {
      if (!is_unimplemented(e)) throw;
      return false;
    }
  }();
  return has;
}

Wishes wishes_of(const Conv2dParams& p, DataType stored) {
  if (stored == DataType::kBfloat16) {
    if (p.algorithm != ConvolutionAlgorithm::kWinograd) return {};
    fail(ExitCode::kDevice,
         "model.convolution: winograd, but there is no Winograd convolution in bf16; write auto or direct, or "
         "run.precision: fp32");
  }
  if (p.algorithm == ConvolutionAlgorithm::kWinograd && !library_has_winograd())
    fail(ExitCode::kDevice,
         "model.convolution: winograd, but oneDNN {}.{} has no Winograd convolution for this processor; write auto or "
         "direct",
         dnnl::version()->major, dnnl::version()->minor);
  Wishes wishes = {};
  if (p.algorithm == ConvolutionAlgorithm::kDirect || !is_winograd_shape(p) || !library_has_winograd()) return wishes;
  for (const Pass pass : kPasses) {
    if (p.algorithm == ConvolutionAlgorithm::kWinograd || winograd_is_faster(p, pass))
      wishes[static_cast<size_t>(pass)] = Wish::kWinogradIfThere;
  }
  return wishes;
}

// The wishes of a choice(): exactly those algorithms.
Wishes wishes_of(const Conv2dParams& p, std::string_view choice) {
  Wishes wishes = {};
  std::string_view rest = choice;
  bool good = true;
  for (const Pass pass : kPasses) {
    if (p.input_is_images && pass == Pass::kBackwardData) continue;
    const size_t end = std::min(rest.find(kBetween), rest.size());
    const std::string_view name = rest.substr(0, end);
    good = good && (name == kByDirect || name == kByWinograd);
    wishes[static_cast<size_t>(pass)] = name == kByWinograd ? Wish::kWinograd : Wish::kDirect;
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  }
  if (!good || !rest.empty())
    fail(ExitCode::kDevice,
         "'{}' is no list of convolutions on a CPU, each of them {} or {}; start one build on all ranks", choice,
         kByDirect, kByWinograd);
  return wishes;
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
  const Wishes wishes = choice.empty() ? wishes_of(p, stored) : wishes_of(p, choice);

  const auto forward_pd = describe_as_wished(p, wishes[0], by_winograd_[0], [&](dnnl::algorithm algorithm) {
    return onednn::describe_forward(engine, algorithm, args, attr);
  });
  forward = dnnl::convolution_forward(forward_pd);
  forward_weights = forward_pd.weights_desc();
  forward_scratch = forward_pd.scratchpad_desc().get_size();
  names = forward_pd.impl_info_str();

  if (!p.input_is_images) {
    const auto data_pd = describe_as_wished(p, wishes[1], by_winograd_[1], [&](dnnl::algorithm algorithm) {
      return onednn::describe_backward_data(engine, algorithm, args, attr, forward_pd);
    });
    backward_data = dnnl::convolution_backward_data(data_pd);
    data_weights = data_pd.weights_desc();
    data_scratch = data_pd.scratchpad_desc().get_size();
    names += std::string(", ") + data_pd.impl_info_str();
  }
  args.weights = {weight_dims, memory::data_type::f32, Format::any};  // a gradient is float32 in every precision
  const auto weights_pd = describe_as_wished(p, wishes[2], by_winograd_[2], [&](dnnl::algorithm algorithm) {
    return onednn::describe_backward_weights(engine, algorithm, args, attr, forward_pd);
  });
  backward_weights = dnnl::convolution_backward_weights(weights_pd);
  grad_weights = weights_pd.diff_weights_desc();
  weights_scratch = weights_pd.scratchpad_desc().get_size();
  names += std::string(", ") + weights_pd.impl_info_str();
}

size_t CpuConv2dPlan::grad_stride() const {
  return round_up_256(grad_weights.get_size());
}

ScratchNeed CpuConv2dPlan::scratch() const {
  const size_t packed = std::max(forward_weights.get_size(), params().input_is_images ? 0 : data_weights.get_size());
  return {.workspace_bytes = round_up_256(padded_bytes()) + round_up_256(image_bytes()) +
                             std::max(packed, grad_stride() * static_cast<size_t>(params().shards)),
          .thread_bytes = std::max({forward_scratch, data_scratch, weights_scratch})};
}

std::string CpuConv2dPlan::choice() const {
  std::string text;
  for (const Pass pass : kPasses) {
    if (params().input_is_images && pass == Pass::kBackwardData) continue;
    text += text.empty() ? "" : kBetween;
    text += by_winograd_[static_cast<size_t>(pass)] ? kByWinograd : kByDirect;
  }
  return text;
}

}  // namespace simclr::conv2d
