// oneDNN 3.x has no Winograd convolution; onednn_v2/ has the same function for 2.x. CMake chooses the folder.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "kernels/common/winograd_layout.h"

namespace simclr::onednn {

inline std::optional<WinogradLayout> winograd_layout(const dnnl::memory::desc&) {
  return {};
}

}  // namespace simclr::onednn
