// Stacks that a thread of the CPU changes between, over Boost.Context, with guard pages; announces every
// change to the sanitizers. Knows nothing of CUDA.
#pragma once

#include <cstddef>

namespace simclr::emulator {

struct Fiber {
  void (*entry)(Fiber*) = nullptr;
  void* context = nullptr;      // where it resumes; valid while it does not run
  const void* stack = nullptr;  // lowest usable byte
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  Fiber* next = nullptr;       // whom it has left for
  int thread = -1;             // the scheduler's: which CUDA thread it runs
};

// A fiber that begins with entry(fiber) when it is switched to for the first time; entry must not return. It lives
// forever. A stack overflow is SIGSEGV at its guard page. The stack that a thread came with is a Fiber{} of its own.
Fiber* create_fiber(void (*entry)(Fiber*));

// Leaves `from`, the fiber that runs now, and continues in `to`. Returns when somebody switches back.
void switch_fiber(Fiber* from, Fiber* to);

}  // namespace simclr::emulator
