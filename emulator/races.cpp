// ThreadSanitizer's fibers for CUDA threads.
#include "emulator/races.h"

#ifdef EMULATOR_THREAD_SANITIZER

#include <cstddef>
#include <vector>

#include "emulator/settings.h"

extern "C" {
// <sanitizer/tsan_interface.h> of g++ 12 lacks the ones of fibers.
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* p);
void __tsan_release(void* p);
}

namespace simclr::emulator::races {

namespace {
constexpr unsigned kNoOrder = 1;  // a change of fibers orders nothing

// Two fibers for each thread of a block, used in turn: threads of a block are strangers to those of the block before.
auto& fibers = *new std::vector<void*>;
void* cpu_fiber = nullptr;
size_t block_threads = 0;
bool odd_block = false;
char thread_begins[8];
char thread_ends[8];
}  // namespace

void begin_kernel(int threads) {
  cpu_fiber = __tsan_get_current_fiber();
  block_threads = static_cast<size_t>(threads);
  while (fibers.size() < 2 * block_threads) fibers.push_back(__tsan_create_fiber(0));
  __tsan_release(thread_begins);
}

void end_kernel() {
  __tsan_acquire(thread_ends);
}

void begin_block() {
  odd_block = !odd_block;
  if (settings().race_blocks) return;
  __tsan_acquire(thread_ends);
  __tsan_release(thread_begins);
}

int slot(int thread) {
  return thread + (odd_block ? static_cast<int>(block_threads) : 0);
}

void enter(int thread) {
  __tsan_switch_to_fiber(fibers[slot(thread)], kNoOrder);
}

void leave() {
  __tsan_switch_to_fiber(cpu_fiber, kNoOrder);
}

void begin_thread() {
  __tsan_acquire(thread_begins);
}

void end_thread() {
  __tsan_release(thread_ends);
}

void release(void* p) {
  __tsan_release(p);
}

void acquire(void* p) {
  __tsan_acquire(p);
}

void abandon() {
  for (void* fiber : fibers) {  // what they did comes before the end of the kernel, although they do not get there
    __tsan_switch_to_fiber(fiber, kNoOrder);
    __tsan_release(thread_ends);
  }
  leave();
  fibers.clear();
}

}  // namespace simclr::emulator::races

#endif
