// Where a CUDA op runs: a stream, the library handles bound to it, and scratch memory. Names no header of CUDA, so that
// every file may include it. Use through exec.h.
#pragma once

#include <cstddef>

#include "kernels/common/data_type.h"
#include "kernels/common/layout.h"

// The toolkit's own types behind cudaStream_t, cublasHandle_t and cudnnHandle_t.
struct CUstream_st;
struct cublasContext;
struct cudnnContext;

namespace simclr {

// Asynchronous: an op has queued its work on `stream` when it returns; operands stay as they are until the stream has
// got there. All pointers in views are device memory. Owned by device/Context.
struct CudaExec {
  CUstream_st* stream = nullptr;
  cublasContext* blas = nullptr;  // bound to stream, with a workspace of its own
  cudnnContext* dnn = nullptr;    // bound to stream
  Precision precision = Precision::kFp32;
  // Device memory for the op at hand; 256-byte aligned; content is lost when the next op is queued.
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;

  // How feature maps, matrices of the network and images are stored.
  DataType storage() const { return precision == Precision::kBf16 ? DataType::kBfloat16 : DataType::kFloat32; }
  Layout layout() const { return Layout::kNhwc; }
  Layout image_layout() const { return Layout::kNhwc; }
};

}  // namespace simclr
