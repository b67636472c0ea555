// The errors of cudart, in addition to what runtime.h offers to the fakes: for the emulator's own cudart_*.cpp.
#pragma once

#include <driver_types.h>

#include <mutex>

#include "emulator/runtime.h"

namespace simclr::emulator {

// Every call of cudart starts with it: no driver, no device, or the sticky error.
cudaError_t begin_call();

// Makes an error the calling thread's last error, without a message; success leaves it alone. Returns it.
cudaError_t remember(cudaError_t error);

cudaError_t peek_last_error();
cudaError_t take_last_error();

// The body of a call of cudart: under the lock, on a device that is there and not broken.
template <typename F>
cudaError_t guarded(F&& body) {
  std::lock_guard guard(runtime_lock());
  if (const cudaError_t error = begin_call(); error != cudaSuccess) return error;
  return body();
}

// After cudaDeviceReset: no error is left.
void repair_device();

}  // namespace simclr::emulator
