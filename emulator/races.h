// Presents every CUDA thread to ThreadSanitizer as a thread: each has a fiber of the sanitizer, a
// barrier is a release by all and then an acquire by all. Without that sanitizer all functions are empty. While the
// emulator itself works, the sanitizer is back on the fiber of the CPU's thread.
#pragma once

namespace simclr::emulator::races {

#ifdef EMULATOR_THREAD_SANITIZER
// The sanitizer takes a stack that two threads use in turn for memory they race for: each keeps one of its own.
inline constexpr bool kOwnStacks = true;
// Before a kernel of blocks of `threads`; after it.
void begin_kernel(int threads);
void end_kernel();
// Before each block. Blocks are ordered, or race with their neighbor with EMULATOR_RACE_BLOCKS=1 (only for kernels
// without static shared memory, which the next block takes over).
void begin_block();
// Around what CUDA thread `thread` itself executes.
void enter(int thread);
void leave();
// Its first and last step, between enter and leave.
void begin_thread();
void end_thread();
// Everything before release(p) of one thread comes before what follows acquire(p) of another.
void release(void* p);
void acquire(void* p);
// Which of the two fibers and stacks of a thread it has in this block.
int slot(int thread);
// After a block that failed: threads that never ended are left, with all fibers.
void abandon();
#else
inline constexpr bool kOwnStacks = false;
inline void begin_kernel(int) {}
inline void end_kernel() {}
inline void begin_block() {}
inline void enter(int) {}
inline void leave() {}
inline void begin_thread() {}
inline void end_thread() {}
inline void release(void*) {}
inline void acquire(void*) {}
inline int slot(int) {
  return 0;
}
inline void abandon() {}
#endif

}  // namespace simclr::emulator::races
