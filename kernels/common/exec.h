// Where and with what an op runs: the first argument of every op. An op checks its shapes once, then calls the overload
// of the device with std::visit. Ops never allocate: memory that an op needs for a moment is scratch, sized at set-up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec_devices.h"  // of with_cuda/ or without_cuda/: std::variant<CpuExec[, CudaExec]>
#include "kernels/common/cuda_exec.h"
#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr {

// What an op will ask of its Exec; collected from all ops at set-up (maximum, not sum).
struct ScratchNeed {
  size_t workspace_bytes = 0;
  size_t thread_bytes = 0;  // CPU only

  void widen(const ScratchNeed& other);
};

// How the Exec's device stores feature maps and matrices of the network.
inline DataType storage_of(const Exec& exec) {
  return std::visit([](const auto& device) { return device.storage(); }, exec);
}
inline Layout layout_of(const Exec& exec) {
  return std::visit([](const auto& device) { return device.layout(); }, exec);
}
inline Layout image_layout_of(const Exec& exec) {
  return std::visit([](const auto& device) { return device.image_layout(); }, exec);
}

// The workspace as count elements of T; SIMCLR_CHECKs that it is large enough.
template <typename T, typename DeviceExec>
T* workspace_as(const DeviceExec& exec, int64_t count) {
  SIMCLR_CHECK(bytes_of<T>(count) <= exec.workspace_bytes, "the op needs {} bytes of workspace, it has {}",
               bytes_of<T>(count), exec.workspace_bytes);
  return reinterpret_cast<T*>(exec.workspace);
}

}  // namespace simclr
