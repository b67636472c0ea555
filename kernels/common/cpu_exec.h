// Where a CPU op runs: a thread count and scratch memory. Use through exec.h.
#pragma once

#include <cstddef>

#include "kernels/common/data_type.h"
#include "kernels/common/error.h"
#include "kernels/common/layout.h"

namespace simclr {

// Memory is owned by device/Context. Synchronous: a CPU op has finished when it returns.
struct CpuExec {
  int threads = 1;
  Precision precision = Precision::kFp32;  // or kBf16, where why_no_bfloat16() (onednn.h) has nothing to say
  // One per op call, shared by all threads; 256-byte aligned; content is lost when the op returns.
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;
  // One per thread: thread t has [t * thread_scratch_bytes, (t+1) * thread_scratch_bytes); 256-byte aligned.
  std::byte* thread_scratch = nullptr;
  size_t thread_scratch_bytes = 0;

  // How feature maps are stored, and matrices of the network. Images are float32 in every precision.
  DataType storage() const { return precision == Precision::kBf16 ? DataType::kBfloat16 : DataType::kFloat32; }
  Layout layout() const { return Layout::kBlocked; }
  Layout image_layout() const { return Layout::kNchw; }

  std::byte* scratch_of(int thread) const { return thread_scratch + thread * thread_scratch_bytes; }
};

}  // namespace simclr
