// The layout of weights in the Winograd domain, from a descriptor of oneDNN 2.x, where its C structure says it;
// onednn_v3/ has the same function for 3.x. CMake chooses the folder.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "kernels/common/numbers.h"
#include "kernels/common/winograd_layout.h"

namespace simclr::onednn {

// None where `weights` are not in the Winograd domain, or laid out in a way that is not known here. adj_scale is for
// 8-bit weights and does not count in float32.
inline std::optional<WinogradLayout> winograd_layout(const dnnl::memory::desc& weights) {
  constexpr int kBlock = WinogradLayout::kBlock;
  const dnnl_memory_desc_t& m = weights.data;
  if (m.format_kind != dnnl_format_kind_wino || m.data_type != dnnl_f32 || m.offset0 != 0 || m.extra.flags != 0)
    return {};
  const dnnl_wino_desc_t& w = m.format_desc.wino_desc;
  if (w.wino_format != dnnl_wino_wei_OBaaIBOIio || w.r != 3 || w.alpha != 6 || w.ic_block != kBlock ||
      w.oc_block != kBlock || w.ic2_block < 1 || w.oc2_block < 1 || w.ic % (w.ic2_block * kBlock) != 0 ||
      w.oc % (w.oc2_block * kBlock) != 0 || w.oc < m.dims[0] || w.ic < m.dims[1])
    return {};
  const WinogradLayout layout{
      .out = w.oc / kBlock, .in = w.ic / kBlock, .out_group = w.oc2_block, .in_group = w.ic2_block};
  if (w.size != bytes_of<float>(layout.elements())) return {};
  return layout;
}

}  // namespace simclr::onednn
