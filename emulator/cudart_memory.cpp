// cudart: memory, copies, fills. A copy is checked at the call against the table of allocations. Pinned memory is read
// and written when the stream gets there; pageable memory is staged, as the real library does: a source is read within
// the call, a destination is written when the call returns.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <vector>

#include "emulator/errors.h"
#include "emulator/memory.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"
#include "emulator/stream.h"

namespace simclr::emulator {

namespace {

cudaError_t take_memory(const char* call, Space space, void** p, size_t bytes) {
  return guarded([&] {
    if (p == nullptr) return refuse(cudaErrorInvalidValue, "%s: no place for the address", call);
    *p = nullptr;
    if (bytes == 0) return cudaSuccess;
    *p = allocate(space, bytes, current_device());
    if (*p != nullptr) return cudaSuccess;
    return refuse(cudaErrorMemoryAllocation, "%s: %zu bytes, with %zu of %zu in use", call, bytes,
                  used_bytes(current_device()), settings().device_bytes);
  });
}

// Both ways of freeing wait for the device.
cudaError_t give_memory(const char* call, Space space, void* p) {
  return guarded([&] {
    if (p == nullptr) return cudaSuccess;
    const Allocation* a = find_allocation(p);
    drain_device(a != nullptr ? a->device : current_device());
    if (!release(space, p)) return refuse(cudaErrorInvalidValue, "%s of %s", call, describe_pointer(p));
    return remember(broken());
  });
}

enum class Side { kDevice, kHost, kEither };

Side source_side(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return Side::kEither;
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? Side::kHost : Side::kDevice;
}

Side target_side(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return Side::kEither;
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? Side::kHost : Side::kDevice;
}

bool is_on_side(const void* p, size_t bytes, Side side) {
  const Allocation* a = find_allocation(p);
  const bool on_device = a != nullptr && a->space == Space::kDevice;
  if (side == Side::kDevice && !on_device) return false;
  if (side == Side::kHost && on_device) return false;
  return a == nullptr || bytes <= a->bytes_from(p);
}

const char* name_of(cudaMemcpyKind kind) {
  constexpr const char* kNames[] = {"host to host", "host to device", "device to host", "device to device", "default"};
  return kind >= 0 && kind <= cudaMemcpyDefault ? kNames[kind] : "of no kind";
}

cudaError_t check_copy(const char* call, const void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (kind < 0 || kind > cudaMemcpyDefault) {
    return refuse(cudaErrorInvalidMemcpyDirection, "%s: kind %d", call, static_cast<int>(kind));
  }
  if (!is_on_side(target, bytes, target_side(kind))) {
    return refuse(cudaErrorInvalidValue, "%s of %zu bytes, %s: the destination is %s", call, bytes, name_of(kind),
                  describe_pointer(target));
  }
  if (!is_on_side(source, bytes, source_side(kind))) {
    return refuse(cudaErrorInvalidValue, "%s of %zu bytes, %s: the source is %s", call, bytes, name_of(kind),
                  describe_pointer(source));
  }
  return cudaSuccess;
}

cudaError_t check_fill(const char* call, const void* target, size_t bytes) {
  if (inside_device(target, bytes)) return cudaSuccess;
  return refuse(cudaErrorInvalidValue, "%s of %zu bytes: the destination is %s", call, bytes, describe_pointer(target));
}

}  // namespace

}  // namespace simclr::emulator

using namespace simclr::emulator;

extern "C" {

cudaError_t cudaMalloc(void** p, size_t bytes) {
  return take_memory("cudaMalloc", Space::kDevice, p, bytes);
}

cudaError_t cudaFree(void* p) {
  return give_memory("cudaFree", Space::kDevice, p);
}

cudaError_t cudaMallocHost(void** p, size_t bytes) {
  return take_memory("cudaMallocHost", Space::kPinned, p, bytes);
}

cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned /*flags*/) {
  return take_memory("cudaHostAlloc", Space::kPinned, p, bytes);
}

cudaError_t cudaFreeHost(void* p) {
  return give_memory("cudaFreeHost", Space::kPinned, p);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return guarded([&] {
    if (bytes == 0) return cudaSuccess;
    if (const cudaError_t e = check_copy("cudaMemcpyAsync", target, source, bytes, kind); e != cudaSuccess) return e;
    cudaError_t error = cudaSuccess;
    if (find_allocation(source) == nullptr) {
      const auto* first = static_cast<const std::byte*>(source);
      const auto staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
      error = enqueue(stream, "cudaMemcpyAsync", [=] { std::memcpy(target, staged->data(), bytes); });
    } else {
      error = enqueue(stream, "cudaMemcpyAsync", [=] { std::memmove(target, source, bytes); });
    }
    if (error == cudaSuccess && find_allocation(target) == nullptr) drain(stream);
    return error;
  });
}

// On the default stream: after the streams made without cudaStreamNonBlocking, but not after the others.
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return guarded([&] {
    if (bytes == 0) return cudaSuccess;
    if (const cudaError_t e = check_copy("cudaMemcpy", target, source, bytes, kind); e != cudaSuccess) return e;
    drain_blocking_streams(current_device());
    DeviceAccess access;
    std::memmove(target, source, bytes);
    return remember(broken());
  });
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    if (const cudaError_t e = check_fill("cudaMemsetAsync", target, bytes); e != cudaSuccess) return e;
    return enqueue(stream, "cudaMemsetAsync", [=] { std::memset(target, value, bytes); });
  });
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  return guarded([&] {
    if (const cudaError_t e = check_fill("cudaMemset", target, bytes); e != cudaSuccess) return e;
    drain_blocking_streams(current_device());
    DeviceAccess access;
    std::memset(target, value, bytes);
    return remember(broken());
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return guarded([&] {
    const Allocation* a = find_allocation(p);
    *attributes = {};
    attributes->type = a == nullptr ? cudaMemoryTypeUnregistered
                                    : (a->space == Space::kDevice ? cudaMemoryTypeDevice : cudaMemoryTypeHost);
    attributes->device = a == nullptr ? -2 : a->device;  // cudaInvalidDeviceId
    attributes->devicePointer = a == nullptr ? nullptr : const_cast<void*>(p);
    attributes->hostPointer = a != nullptr && a->space == Space::kPinned ? const_cast<void*>(p) : nullptr;
    return cudaSuccess;
  });
}

}  // extern "C"
