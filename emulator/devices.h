// The GPUs that this process sees.
#pragma once

namespace simclr::emulator {

// EMULATOR_DEVICES, or those of them that CUDA_VISIBLE_DEVICES lists by number.
int device_count();

}  // namespace simclr::emulator
