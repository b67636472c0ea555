// What a part of the program needs to compute on this rank: the device (Exec with its scratch memory) and the other
// ranks. Built once at set-up; reserve() calls come before the first step, no memory is taken within a step.
#pragma once

#include <string>

#include "kernels/common/exec.h"
#include "src/device/buffer.h"

namespace simclr {

class Context {
 public:
  explicit Context(int threads);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Exec& exec() const { return exec_; }
  int threads() const;

  // Makes the scratch memory at least this large. Not while an op runs.
  void reserve(const ScratchNeed& need);

  // A zero-filled buffer, counted in allocated_bytes().
  Buffer allocate(size_t bytes);
  template <typename T>
  Buffer allocate_elements(int64_t count) {
    return allocate(static_cast<size_t>(count) * sizeof(T));
  }

  size_t allocated_bytes() const { return allocated_bytes_; }

  // "oneDNN 2.6.3, channels in blocks of 16": what the bits of a result depend on beside the processor.
  std::string library_version() const;

 private:
  Exec exec_;
  Buffer workspace_;
  Buffer thread_scratch_;
  size_t allocated_bytes_ = 0;
};

}  // namespace simclr
