// What a part of the program needs to compute on this rank: the device and the Exec of its ops with their scratch
// memory. Built once at set-up; reserve() calls come before the first step, no memory is taken within a step.
#pragma once

#include <memory>
#include <string>

#include "kernels/common/exec.h"
#include "kernels/common/numbers.h"
#include "src/device/buffer.h"
#include "src/device/device.h"
#include "src/device/profiler.h"

namespace simclr {

class Context {
 public:
  explicit Context(std::shared_ptr<Device> device);
  explicit Context(int threads, Precision precision = Precision::kFp32)
      : Context(make_cpu_device(threads, precision)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device& device() const { return *device_; }
  std::shared_ptr<Device> shared_device() const { return device_; }
  const Exec& exec() const { return exec_; }
  int threads() const { return device_->threads(); }
  std::string library_version() const { return device_->library_version(); }

  // Makes the scratch memory at least this large. Not while an op runs.
  void reserve(const ScratchNeed& need);

  // A zero-filled buffer, counted in allocated_bytes().
  Buffer allocate(size_t bytes);
  template <typename T>
  Buffer allocate_elements(int64_t count) {
    return allocate(bytes_of<T>(count));
  }
  // For feature maps and matrices of the network, in the device's storage type.
  Buffer allocate_storage(int64_t count) { return allocate(static_cast<size_t>(count) * size_of(device_->storage())); }

  size_t allocated_bytes() const { return allocated_bytes_; }

  // Null unless the run is profiled. The profiler outlives its use here.
  Profiler* profiler() const { return profiler_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }

 private:
  void reserve_on(CpuExec& exec, const ScratchNeed& need);
  void reserve_on(CudaExec& exec, const ScratchNeed& need);

  std::shared_ptr<Device> device_;
  Exec exec_;
  Buffer workspace_;
  Buffer thread_scratch_;
  size_t allocated_bytes_ = 0;
  Profiler* profiler_ = nullptr;
};

}  // namespace simclr
