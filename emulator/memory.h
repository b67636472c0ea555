// The memory of the emulated devices: a table of allocations in host memory. Every byte of a new allocation is 0xFF
// (NaN as float, -1 as an index), so that no caller relies on zeros. For cudart_memory.cpp and kernel.cpp; fakes use
// runtime.h. All functions are called under runtime_lock().
#pragma once

#include <cstddef>
#include <cstdint>

namespace simclr::emulator {

enum class Space { kDevice, kPinned };

struct Allocation {
  std::byte* data = nullptr;
  size_t bytes = 0;
  Space space = Space::kDevice;
  int device = 0;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(data); }
  bool contains(uintptr_t address) const { return address >= begin() && address - begin() < bytes; }
  // The bytes from p, which lies within, to the end.
  size_t bytes_from(const void* p) const { return begin() + bytes - reinterpret_cast<uintptr_t>(p); }
};

// nullptr when the device has no room (EMULATOR_MEMORY_MIB) or the machine has none. bytes >= 1; 256-byte aligned.
void* allocate(Space space, size_t bytes, int device);

// False when p is not what allocate() returned for this space, or is free already.
bool release(Space space, void* p);
void release_all(int device);

// The live allocation that p points into (one past the end is outside), or nullptr.
const Allocation* find_allocation(const void* p);

size_t used_bytes(int device);

// False when something has been written past the end of the allocation. Only without AddressSanitizer (which does
// this better): there an allocation is followed by bytes that stay 0xFF.
bool tail_is_intact(const Allocation& allocation);

// Fills with 0xFF, unseen by the sanitizers.
void poison(void* p, size_t bytes);

}  // namespace simclr::emulator
