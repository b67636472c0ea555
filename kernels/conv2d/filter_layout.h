// The two layouts of a filter on the GPU and the kernels between them: the master weights OIHW in float32 without
// padding, and what cuDNN computes with, KRSC in the storage type with both channel counts padded with zeros.
#pragma once

#include <cstdint>

#include "kernels/common/cuda_exec.h"

namespace simclr::conv2d {

struct FilterLayout {
  int64_t out = 0, in = 0, kernel = 0;    // of the layer
  int64_t out_stored = 0, in_stored = 0;  // of the feature maps in memory

  constexpr int64_t plain_elements() const { return out * in * kernel * kernel; }
  constexpr int64_t stored_elements() const { return out_stored * kernel * kernel * in_stored; }
};

// Queued on exec.stream. weight [out, in, kernel, kernel] -> stored [out_stored, kernel, kernel, in_stored] of exec's
// storage type.
void store_filter(const CudaExec& exec, const FilterLayout& layout, const float* weight, void* stored);

// Queued on exec.stream. parts: `count` stored gradients, `stride` elements apart, count a power of two; grad_weight
// [out, in, kernel, kernel] = their sum in the order of the balanced tree, in float32 (kernels/common/ordered_tree.h).
void sum_stored_gradients(const CudaExec& exec, const FilterLayout& layout, const void* parts, int64_t count,
                          int64_t stride, float* grad_weight);

}  // namespace simclr::conv2d
