// The table of allocations, poison, EMULATOR_PROTECT and EMULATOR_LEAKS.
#include "emulator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "emulator/runtime.h"
#include "emulator/settings.h"

namespace simclr::emulator {

namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;
constexpr size_t kArenaBytes = size_t{64} << 30;  // of addresses, not of memory
constexpr size_t kRemembered = 512;               // freed allocations that messages know
#ifdef EMULATOR_ADDRESS_SANITIZER
constexpr size_t kTail = 0;  // so that its red zone begins right after the last byte
#else
constexpr size_t kTail = 256;
#endif

// Never destroyed: memory is freed by objects with any lifetime, and the leak report comes last.
auto& live = *new std::map<uintptr_t, Allocation>;
auto& freed = *new std::map<uintptr_t, Allocation>;
auto& used = *new std::map<int, size_t>;

// With EMULATOR_PROTECT device memory comes from one range of addresses, so that one call can close it. Addresses are
// used once.
char* arena = nullptr;
size_t arena_used = 0;
int openings = 0;

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

void set_arena_access(int access) {
  if (arena_used > 0 && mprotect(arena, arena_used, access) != 0) {
    complain("mprotect of the device memory failed");
    std::abort();
  }
}

void* take_from_arena(size_t bytes) {
  if (arena == nullptr) {
    void* range = mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return nullptr;
    arena = static_cast<char*>(range);
  }
  const size_t pages = round_up(bytes, kPage);
  if (arena_used + pages > kArenaBytes) return nullptr;
  char* p = arena + arena_used;
  arena_used += pages;
  return p;
}

bool in_arena(const void* p) {
  return arena != nullptr && p >= arena && p < arena + arena_used;
}

void forget_overlapping(std::map<uintptr_t, Allocation>& table, uintptr_t begin, size_t bytes) {
  auto it = table.lower_bound(begin);
  if (it != table.begin() && std::prev(it)->second.contains(begin)) --it;
  while (it != table.end() && it->first < begin + bytes) it = table.erase(it);
}

const Allocation* find_in(const std::map<uintptr_t, Allocation>& table, uintptr_t address) {
  auto it = table.upper_bound(address);
  if (it == table.begin()) return nullptr;
  --it;
  return it->second.contains(address) ? &it->second : nullptr;
}

const char* name_of(Space space) {
  return space == Space::kDevice ? "device memory" : "pinned host memory";
}

void free_memory(const Allocation& allocation) {
  if (!tail_is_intact(allocation)) {
    break_device(cudaErrorIllegalAddress, "something wrote past the end of %s of %zu bytes", name_of(allocation.space),
                 allocation.bytes);
  }
  used[allocation.device] -= allocation.space == Space::kDevice ? allocation.bytes : 0;
  freed[allocation.begin()] = allocation;
  if (freed.size() > kRemembered) freed.erase(freed.begin());
  if (in_arena(allocation.data)) {
    madvise(allocation.data, round_up(allocation.bytes + kTail, kPage), MADV_DONTNEED);
  } else {
    std::free(allocation.data);
  }
}

// Runs after every destructor of the program, which was loaded later.
struct LeakReport {
  ~LeakReport() {
    if (!settings().leaks || live.empty()) return;
    for (const auto& [begin, allocation] : live) {
      complain("leak: %s of %zu bytes was never freed", name_of(allocation.space), allocation.bytes);
    }
    std::fflush(nullptr);
    _exit(99);
  }
} leak_report;

}  // namespace

std::recursive_mutex& runtime_lock() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

void poison(void* p, size_t bytes) {
  asm volatile("rep stosb" : "+D"(p), "+c"(bytes) : "a"(0xFF) : "memory");
}

void* allocate(Space space, size_t bytes, int device) {
  if (space == Space::kDevice && (bytes > settings().device_bytes || used[device] > settings().device_bytes - bytes)) {
    return nullptr;
  }
  DeviceAccess access;
  void* p = nullptr;
  if (space == Space::kDevice && settings().protect) {
    p = take_from_arena(bytes + kTail);
    if (p != nullptr) set_arena_access(PROT_READ | PROT_WRITE);
  } else if (posix_memalign(&p, kAlignment, bytes + kTail) != 0) {
    p = nullptr;
  }
  if (p == nullptr) return nullptr;
  poison(p, bytes + kTail);
  const auto begin = reinterpret_cast<uintptr_t>(p);
  forget_overlapping(freed, begin, bytes);
  live[begin] = {.data = static_cast<std::byte*>(p), .bytes = bytes, .space = space, .device = device};
  used[device] += space == Space::kDevice ? bytes : 0;
  return p;
}

bool release(Space space, void* p) {
  const auto it = live.find(reinterpret_cast<uintptr_t>(p));
  if (it == live.end() || it->second.space != space) return false;
  DeviceAccess access;
  const Allocation allocation = it->second;
  live.erase(it);
  free_memory(allocation);
  return true;
}

void release_all(int device) {
  for (auto it = live.begin(); it != live.end();) {
    const Allocation allocation = it->second;
    ++it;
    if (allocation.device == device) release(allocation.space, allocation.data);
  }
}

const Allocation* find_allocation(const void* p) {
  return find_in(live, reinterpret_cast<uintptr_t>(p));
}

size_t used_bytes(int device) {
  return used[device];
}

bool tail_is_intact(const Allocation& allocation) {
  const std::byte* tail = allocation.data + allocation.bytes;
  for (size_t i = 0; i < kTail; ++i) {
    if (tail[i] != std::byte{0xFF}) return false;
  }
  return true;
}

namespace {
bool inside(const void* p, size_t bytes, Space space, int device) {
  if (bytes == 0) return true;
  std::lock_guard guard(runtime_lock());
  const Allocation* a = find_allocation(p);
  return a != nullptr && a->space == space && (device == kAnyDevice || device == a->device) &&
         bytes <= a->bytes_from(p);
}
}  // namespace

bool inside_device(const void* p, size_t bytes, int device) {
  return inside(p, bytes, Space::kDevice, device);
}

bool inside_pinned(const void* p, size_t bytes) {
  return inside(p, bytes, Space::kPinned, kAnyDevice);
}

const char* describe_pointer(const void* p) {
  static thread_local std::string text;
  std::lock_guard guard(runtime_lock());
  const auto address = reinterpret_cast<uintptr_t>(p);
  const Allocation* a = find_in(live, address);
  if (a != nullptr) {
    text = std::string(name_of(a->space)) + " of " + std::to_string(a->bytes) + " bytes, " +
           std::to_string(a->bytes_from(p)) + " before its end";
    if (settings().devices > 1) text += ", of device " + std::to_string(a->device);
  } else if (p == nullptr) {
    text = "null";
  } else if (const Allocation* old = find_in(freed, address)) {
    text = "freed " + std::string(name_of(old->space)) + " of " + std::to_string(old->bytes) + " bytes";
  } else if (const Allocation* before = find_in(live, address - 1)) {
    text = "the end of " + std::string(name_of(before->space)) + " of " + std::to_string(before->bytes) + " bytes";
  } else {
    text = "no memory of the device";
  }
  return text.c_str();
}

DeviceAccess::DeviceAccess() {
  runtime_lock().lock();
  if (openings++ == 0 && settings().protect) set_arena_access(PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess() {
  if (--openings == 0 && settings().protect) set_arena_access(PROT_NONE);
  runtime_lock().unlock();
}

}  // namespace simclr::emulator
