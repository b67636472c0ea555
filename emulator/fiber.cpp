// Fibers: stacks by mmap, changes by Boost.Context's jump_fcontext (13 times faster than ucontext, which changes the
// signal mask with the kernel's help every time).
#include "emulator/fiber.h"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>

#include "emulator/runtime.h"

#ifdef EMULATOR_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace simclr::emulator {

namespace {

namespace context = boost::context::detail;

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = 4096;

// The first thing after a change, on the stack of `here`: notes where the fiber that was left will resume.
void arrive([[maybe_unused]] Fiber* here, context::transfer_t came) {
  auto* before = static_cast<Fiber*>(came.data);
  before->context = came.fctx;
#ifdef EMULATOR_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(here->fake_stack, &before->stack, &before->stack_bytes);
#endif
}

void begin(context::transfer_t came) {
  Fiber* here = static_cast<Fiber*>(came.data)->next;
  arrive(here, came);
  here->entry(here);
  std::abort();  // entry returned
}

}  // namespace

Fiber* create_fiber(void (*entry)(Fiber*)) {
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    complain("no memory for the stack of a CUDA thread");
    std::abort();
  }
  char* stack = static_cast<char*>(memory) + kGuardBytes;
  auto* fiber = new Fiber{.entry = entry, .stack = stack, .stack_bytes = kStackBytes};
  fiber->context = context::make_fcontext(stack + kStackBytes, kStackBytes, begin);
  return fiber;
}

void switch_fiber(Fiber* from, Fiber* to) {
  from->next = to;
#ifdef EMULATOR_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
  arrive(from, context::jump_fcontext(to->context, from));
}

}  // namespace simclr::emulator
