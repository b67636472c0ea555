// The errors of cudart, beside what runtime.h offers to the fakes: for the emulator's own cudart_*.cpp.
#pragma once

#include <driver_types.h>

namespace simclr::emulator {

// Every call of cudart starts with it: no driver, no device, or the sticky error.
cudaError_t begin_call();

// Makes an error the calling thread's last error, without a word; success leaves it alone. Returns it.
cudaError_t remember(cudaError_t error);

cudaError_t peek_last_error();
cudaError_t take_last_error();

// After cudaDeviceReset: no error is left.
void mend_device();

}  // namespace simclr::emulator
