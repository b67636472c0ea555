// One block of a kernel: its threads as fibers, the scheduler between them, barriers and warp collectives. A thread
// that never waits for others runs to its end without a change of stacks. Called by kernel.cpp, under runtime_lock().
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>

namespace simclr::emulator {

inline constexpr unsigned kMostThreads = 1024;

// Shape of the blocks to come and what a thread executes.
void prepare_blocks(dim3 threads, const std::function<void()>* body);

// Runs all threads of one block (blockIdx is set). Empty, or what went wrong: divergent barriers, a deadlock with the
// lines where threads wait, __trap. The threads are then left where they stand, their stacks are lost.
std::string run_block(void* dynamic_shared);

}  // namespace simclr::emulator
