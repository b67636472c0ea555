// cudart: errors and versions. The texts are the real library's.
#include <cuda_runtime_api.h>

#include <array>

#include "emulator/errors.h"
#include "emulator/settings.h"

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

// Those that the emulator, or a test that plants an error, returns.
constexpr std::array kErrors{
    ErrorText{cudaSuccess, "cudaSuccess", "no error"},
    ErrorText{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    ErrorText{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    ErrorText{cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    ErrorText{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    ErrorText{cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    ErrorText{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
              "CUDA driver version is insufficient for CUDA runtime version"},
    ErrorText{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    ErrorText{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    ErrorText{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    ErrorText{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    ErrorText{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    ErrorText{cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    ErrorText{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    ErrorText{cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    ErrorText{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    ErrorText{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* find_text(cudaError_t error) {
  for (const ErrorText& e : kErrors) {
    if (e.error == error) return &e;
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* e = find_text(error);
  return e != nullptr ? e->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* e = find_text(error);
  return e != nullptr ? e->text : "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  return simclr::emulator::take_last_error();
}

cudaError_t cudaPeekAtLastError() {
  return simclr::emulator::peek_last_error();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// 0 stands for no driver at all.
cudaError_t cudaDriverGetVersion(int* version) {
  const bool none = simclr::emulator::settings().no_device == simclr::emulator::NoDevice::kDriver;
  *version = none ? 0 : CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
