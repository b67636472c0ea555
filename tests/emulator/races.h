// What ThreadSanitizer is told, so that it takes every CUDA thread for a thread: each has a fiber of the sanitizer, a
// barrier is a release by all and then an acquire by all. Without that sanitizer all functions are empty. While the
// emulator itself works, the sanitizer is back on the fiber of the CPU's thread.
#pragma once

namespace simclr::emulator::races {

#ifdef EMULATOR_THREAD_SANITIZER
// Before a kernel of blocks of `threads`; after it.
void begin_kernel(int threads);
void end_kernel();
// Before each block. Blocks are ordered, or race with their neighbour with EMULATOR_RACE_BLOCKS=1 (only for kernels
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
// The fibers of threads that never ended are of no use any more.
void abandon();
#else
inline void begin_kernel(int) {}
inline void end_kernel() {}
inline void begin_block() {}
inline void enter(int) {}
inline void leave() {}
inline void begin_thread() {}
inline void end_thread() {}
inline void release(void*) {}
inline void acquire(void*) {}
inline void abandon() {}
#endif

}  // namespace simclr::emulator::races
