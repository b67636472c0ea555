#include "kernels/common/cuda_check.h"

#include <string_view>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

// The path from the repository root on: what a reader of the message can find.
std::string_view short_path(std::string_view file) {
  for (const std::string_view root : {"/kernels/", "/src/", "/emulator/", "/tests/", "/bench/"})
    if (const auto at = file.rfind(root); at != std::string_view::npos) return file.substr(at + 1);
  return file;
}

}  // namespace

void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  fail(ExitCode::kDevice, "CUDA: {}: {} ({}), in {} at {}:{}", cudaGetErrorName(status), cudaGetErrorString(status),
       to_int(status), call, short_path(file), line);
}

void cublas_check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ExitCode::kDevice, "cuBLAS: {} ({}), in {} at {}:{}", cublasGetStatusString(status), to_int(status), call,
       short_path(file), line);
}

void cudnn_check(cudnnStatus_t status, const char* call, const char* file, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail(ExitCode::kDevice, "cuDNN: {} ({}), in {} at {}:{}", cudnnGetErrorString(status), to_int(status), call,
       short_path(file), line);
}

}  // namespace simclr
