// What block.cpp calls once all lanes of a warp have brought their operands to a matrix product.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "language/fragments.h"

namespace simclr::emulator {

inline constexpr int kLanes = 32;

// operands: the address of each lane's LaneOperands. Reads all of them before it writes any d.
void multiply_for_all_lanes(const std::array<uint64_t, kLanes>& operands);

}  // namespace simclr::emulator
