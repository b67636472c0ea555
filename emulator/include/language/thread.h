// What a CUDA thread knows of itself and how it meets others: indices, barriers, warp collectives. A thread is a fiber
// that runs until it must wait for others here. Default arguments carry the caller's file and line into the reports.
#pragma once

#include <vector_types.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#undef __shared__
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Static shared memory is the thread-local block of the kernels' shared library: thread_local implies static within a
// function, and the block is found and filled with 0xFF before every block of the grid. A library of kernels must have
// no other thread-local variables.
#define __shared__ thread_local

// Set by the scheduler whenever it switches threads.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

namespace simclr::emulator {

// A place in a kernel. As a default argument, current() is the place of the call.
struct Where {
  const char* file = "";
  unsigned line = 0;
  static constexpr Where current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Barrier { kPlain, kCount, kAnd, kOr };
enum class Shuffle { kIndex, kUp, kDown, kXor };

// All threads of the block; the result of the variant.
int meet_block(Barrier kind, int predicate, Where where);
// All lanes of the mask: the bits of another lane; 0xFF everywhere where CUDA says undefined.
uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t bits, int operand, int width, Where where);
unsigned ballot(unsigned mask, bool predicate, Where where);
void meet_warp(unsigned mask, Where where);
// Memory of exactly the size of the launch, aligned to 128 bytes; null when it is 0.
void* dynamic_shared();
[[noreturn]] void trap(Where where);

template <typename T>
T shuffle_value(Shuffle kind, unsigned mask, T value, int operand, int width, Where where) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_destructible_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  bits = shuffle(kind, mask, bits, operand, width, where);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

}  // namespace simclr::emulator

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
inline void __syncthreads(simclr::emulator::Where where = simclr::emulator::Where::current()) {
  simclr::emulator::meet_block(simclr::emulator::Barrier::kPlain, 0, where);
}
inline int __syncthreads_count(int predicate, simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::meet_block(simclr::emulator::Barrier::kCount, predicate, where);
}
inline int __syncthreads_and(int predicate, simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::meet_block(simclr::emulator::Barrier::kAnd, predicate, where);
}
inline int __syncthreads_or(int predicate, simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::meet_block(simclr::emulator::Barrier::kOr, predicate, where);
}
inline void __syncwarp(unsigned mask = 0xffffffffU,
                       simclr::emulator::Where where = simclr::emulator::Where::current()) {
  simclr::emulator::meet_warp(mask, where);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::shuffle_value(simclr::emulator::Shuffle::kIndex, mask, value, lane, width, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::shuffle_value(simclr::emulator::Shuffle::kUp, mask, value, static_cast<int>(delta), width,
                                         where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::shuffle_value(simclr::emulator::Shuffle::kDown, mask, value, static_cast<int>(delta), width,
                                         where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::shuffle_value(simclr::emulator::Shuffle::kXor, mask, value, lane_mask, width, where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::ballot(mask, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      simclr::emulator::Where where = simclr::emulator::Where::current()) {
  return simclr::emulator::ballot(mask, predicate == 0, where) == 0;
}

// The order of writes is that of one CPU: fences have nothing to do, and a missing one is not found.
inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap(simclr::emulator::Where where = simclr::emulator::Where::current()) {
  simclr::emulator::trap(where);
}
// NOLINTEND(readability-identifier-naming)
