// cudart: devices. Every process on a machine sees the same GPUs with the same UUIDs; CUDA_VISIBLE_DEVICES chooses and
// orders them by number, as for the real library.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/block.h"
#include "emulator/devices.h"
#include "emulator/errors.h"
#include "emulator/kernel.h"
#include "emulator/memory.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"
#include "emulator/stream.h"

namespace simclr::emulator {

namespace {

// Physical numbers by ordinal. The list ends at the first number without a device.
std::vector<int> read_visible() {
  std::vector<int> visible;
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int i = 0; i < settings().devices; ++i) visible.push_back(i);
    return visible;
  }
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    char* end = nullptr;
    const long number = std::strtol(item.c_str(), &end, 10);
    if (item.empty() || *end != '\0' || number < 0 || number >= settings().devices) break;
    visible.push_back(static_cast<int>(number));
  }
  return visible;
}

const std::vector<int>& visible_devices() {
  static const std::vector<int> visible = read_visible();
  return visible;
}

cudaError_t check_ordinal(const char* call, int device) {
  if (device >= 0 && device < device_count()) return cudaSuccess;
  return refuse(cudaErrorInvalidDevice, "%s: device %d of %d", call, device, device_count());
}

cudaUUID_t uuid_of(int physical) {
  cudaUUID_t uuid{};
  std::memcpy(uuid.bytes, "emulated gpu   ", sizeof uuid.bytes);
  uuid.bytes[15] = static_cast<char>(physical);
  return uuid;
}

void describe(cudaDeviceProp& p, int device) {
  const int physical = visible_devices()[device];
  p = {};
  std::snprintf(p.name, sizeof p.name, "Emulated GPU");
  p.uuid = uuid_of(physical);
  p.totalGlobalMem = settings().device_bytes;
  p.sharedMemPerBlock = size_t{48} << 10;
  p.sharedMemPerBlockOptin = kMostShared;
  p.sharedMemPerMultiprocessor = size_t{228} << 10;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = kMostThreads;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = kMostThreads;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = 9;
  p.minor = 0;
  p.multiProcessorCount = settings().multiprocessors;
  p.l2CacheSize = 50 << 20;
  p.unifiedAddressing = 1;
  p.asyncEngineCount = 1;
  p.concurrentKernels = 1;
  p.pciBusID = physical + 1;
}

bool find_attribute(const cudaDeviceProp& p, cudaDeviceAttr attribute, int* value) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return *value = p.multiProcessorCount, true;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = p.major, true;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = p.minor, true;
    case cudaDevAttrWarpSize:
      return *value = p.warpSize, true;
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = p.maxThreadsPerBlock, true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return *value = p.maxThreadsPerMultiProcessor, true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = static_cast<int>(p.sharedMemPerBlock), true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = static_cast<int>(p.sharedMemPerBlockOptin), true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return *value = static_cast<int>(p.sharedMemPerMultiprocessor), true;
    case cudaDevAttrL2CacheSize:
      return *value = p.l2CacheSize, true;
    case cudaDevAttrMaxGridDimX:
      return *value = p.maxGridSize[0], true;
    case cudaDevAttrMaxGridDimY:
      return *value = p.maxGridSize[1], true;
    case cudaDevAttrUnifiedAddressing:
      return *value = p.unifiedAddressing, true;
    case cudaDevAttrPciBusId:
      return *value = p.pciBusID, true;
    default:
      return false;
  }
}

}  // namespace

int device_count() {
  return static_cast<int>(visible_devices().size());
}

}  // namespace simclr::emulator

using namespace simclr::emulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = device_available(); error != cudaSuccess) return error;
  if (device_count() == 0) return remember(cudaErrorNoDevice);
  *count = device_count();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return guarded([&] {
    if (const cudaError_t error = check_ordinal("cudaSetDevice", device); error != cudaSuccess) return error;
    set_current_device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return guarded([&] {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return guarded([&] {
    if (const cudaError_t error = check_ordinal("cudaGetDeviceProperties", device); error != cudaSuccess) return error;
    describe(*properties, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return guarded([&] {
    if (const cudaError_t error = check_ordinal("cudaDeviceGetAttribute", device); error != cudaSuccess) return error;
    cudaDeviceProp properties;
    describe(properties, device);
    if (find_attribute(properties, attribute, value)) return cudaSuccess;
    return refuse(cudaErrorNotSupported, "cudaDeviceGetAttribute: attribute %d is not emulated",
                  static_cast<int>(attribute));
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return guarded([&] {
    if (const cudaError_t error = check_ordinal("cudaDeviceGetPCIBusId", device); error != cudaSuccess) return error;
    cudaDeviceProp properties;
    describe(properties, device);
    std::snprintf(text, static_cast<size_t>(bytes), "0000:%02X:00.0", static_cast<unsigned>(properties.pciBusID));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return guarded([&] {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return guarded([&] {
    *total_bytes = settings().device_bytes;
    *free_bytes = settings().device_bytes - used_bytes(current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return guarded([&] {
    drain_device(current_device());
    return remember(broken());
  });
}

// The only call that repairs a broken device: memory, streams and events of it are gone.
cudaError_t cudaDeviceReset() {
  std::lock_guard guard(runtime_lock());
  if (const cudaError_t error = device_available(); error != cudaSuccess) return error;
  destroy_streams_and_events(current_device());
  release_all(current_device());
  repair_device();
  return cudaSuccess;
}

}  // extern "C"
