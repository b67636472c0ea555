// Where and with what an op runs: the first argument of every op. CPU: a thread count and scratch memory.
// An op checks its shapes once, then calls the overload for the device with std::visit; CUDA joins as a second
// alternative of Exec. Ops never allocate: memory that an op needs for a moment is the scratch below, sized at set-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/common/error.h"

namespace simclr {

// Memory is owned by device/Context. Synchronous: a CPU op has finished when it returns.
struct CpuExec {
  int threads = 1;
  // One per op call, shared by all threads; 256-byte aligned; content is lost when the op returns.
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;
  // One per thread: thread t has [t * thread_scratch_bytes, (t+1) * thread_scratch_bytes); 256-byte aligned.
  std::byte* thread_scratch = nullptr;
  size_t thread_scratch_bytes = 0;

  std::byte* scratch_of(int thread) const {
    return thread_scratch + static_cast<size_t>(thread) * thread_scratch_bytes;
  }
};

using Exec = std::variant<CpuExec>;

// What an op will ask of CpuExec; collected from all ops at set-up (maximum, not sum).
struct ScratchNeed {
  size_t workspace_bytes = 0;
  size_t thread_bytes = 0;

  void widen(const ScratchNeed& other);
};

// The workspace as count elements of T; SIMCLR_CHECKs that it is large enough.
template <typename T>
T* workspace_as(const CpuExec& exec, size_t count) {
  SIMCLR_CHECK(count * sizeof(T) <= exec.workspace_bytes, "op needs {} bytes of workspace, {} are there",
               count * sizeof(T), exec.workspace_bytes);
  return reinterpret_cast<T*>(exec.workspace);
}

}  // namespace simclr
