// cuBLAS: handles and their settings.
#include <cublas_v2.h>

#include "emulator/cublas_product.h"
#include "emulator/runtime.h"

using namespace simclr::emulator;

namespace {

template <typename F>
cublasStatus_t with_handle(const char* call, cublasHandle_t handle, F&& body) {
  if (handle != nullptr) return body();
  complain("%s: no handle", call);
  return CUBLAS_STATUS_NOT_INITIALIZED;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (device_available() != cudaSuccess || broken() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext;
  (*handle)->device = current_device();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return with_handle("cublasDestroy", handle, [&] {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
  });
}

// "Unconditionally resets the cuBLAS library workspace back to the default workspace pool", says the manual.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return with_handle("cublasSetStream", handle, [&] {
    if (!check_stream(stream, "cublasSetStream")) return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->lost_workspace = handle->lost_workspace || handle->workspace != nullptr;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return with_handle("cublasGetStream", handle, [&] {
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  return with_handle("cublasSetWorkspace", handle, [&] {
    constexpr size_t kAlignment = 256;
    if (reinterpret_cast<size_t>(workspace) % kAlignment != 0 || !inside_device(workspace, bytes, handle->device)) {
      complain("cublasSetWorkspace: %zu bytes at %p, aligned to 256 bytes in device memory is asked for; it is %s",
               bytes, workspace, describe_pointer(workspace));
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->workspace = workspace;
    handle->lost_workspace = false;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return with_handle("cublasSetMathMode", handle, [&] {
    constexpr int kReduction = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    const int plain = static_cast<int>(mode) & ~kReduction;
    if (plain != CUBLAS_DEFAULT_MATH && plain != CUBLAS_PEDANTIC_MATH && plain != CUBLAS_TF32_TENSOR_OP_MATH) {
      complain("cublasSetMathMode: mode 0x%x", static_cast<unsigned>(mode));
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return with_handle("cublasGetMathMode", handle, [&] {
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return with_handle("cublasSetPointerMode", handle, [&] {
    handle->scalars = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return with_handle("cublasGetPointerMode", handle, [&] {
    *mode = handle->scalars;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return with_handle("cublasSetAtomicsMode", handle, [&] {
    handle->atomics = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return with_handle("cublasGetAtomicsMode", handle, [&] {
    *mode = handle->atomics;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t /*handle*/, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "unknown";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    default:
      return "unknown error";
  }
}

}  // extern "C"
