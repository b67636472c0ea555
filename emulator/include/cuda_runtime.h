// Stands before the toolkit's <cuda_runtime.h>: NVIDIA's own types and prototypes, then the kernel language for the
// host's compiler. Sources see SIMCLR_EMULATED_CUDA. The toolkit's launch template is hidden; language/launch.h has
// another.
#pragma once

#ifdef __CUDACC__
#error "emulator/include is for the host's compiler only"
#endif

#define cudaLaunchKernelEx simclr_emulator_hidden_cudaLaunchKernelEx
#include_next <cuda_runtime.h>
#undef cudaLaunchKernelEx

#define SIMCLR_EMULATED_CUDA 1

#include "language/atomics.h"
#include "language/launch.h"
#include "language/math.h"
#include "language/thread.h"
