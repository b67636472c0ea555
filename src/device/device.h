// Where this rank computes: memory, copies and the Exec that ops run with. CpuDevice is the host itself; CudaDevice
// (cuda_device.h) one GPU. Which one a run gets is choose_device's business (choose_device.h).
//
// Order: work is queued as on one stream. zero(), copy() and ops are queued and return; upload() may return before the
// device has the bytes, but the host's memory is free again; download() and synchronize() wait for all that was queued
// before. On the CPU everything is done on return.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/common/exec.h"

namespace simclr {

inline constexpr size_t kBufferAlignment = 256;

// A copy from the device that arrives later, without anybody waiting within a step. Not reusable while on its way.
class Readback {
 public:
  virtual ~Readback() = default;
  virtual void start(const void* device) = 0;  // queues the copy of bytes() bytes
  virtual const std::byte* wait() = 0;         // blocks until the last start() has arrived
};

// Host memory whose content travels to the device without a wait: fill host(), then start().
class Upload {
 public:
  virtual ~Upload() = default;
  virtual std::byte* host() = 0;                       // waits until the last start() has left
  virtual void start(void* device, size_t bytes) = 0;  // queues the copy of the first `bytes`
};

class Device {
 public:
  virtual ~Device() = default;

  virtual bool is_cpu() const = 0;
  virtual int threads() const = 0;  // of the host: for CPU ops, and for loaders on any device
  virtual Exec exec() const = 0;    // without scratch memory, which is Context's
  virtual DataType storage() const { return DataType::kFloat32; }  // of feature maps

  // Zero-filled, aligned to kBufferAlignment. Error(kDevice) with the size when there is no memory.
  virtual std::byte* allocate(size_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;

  virtual void upload(void* device, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* device, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void zero(void* device, size_t bytes) = 0;
  virtual void synchronize() = 0;
  virtual std::unique_ptr<Readback> make_readback(size_t bytes) = 0;
  virtual std::unique_ptr<Upload> make_upload(size_t bytes) = 0;

  virtual std::string model() const = 0;  // "CPU", "NVIDIA H200"
  // "oneDNN 2.6.3 with AVX-512, channels in blocks of 16, bf16 by AVX512_BF16": what the bits depend on,
  // next to the processor.
  virtual std::string library_version() const = 0;
};

// threads >= 1. precision: fp32, or bf16 where why_no_bfloat16() is empty.
std::shared_ptr<Device> make_cpu_device(int threads, Precision precision = Precision::kFp32);

// Why the CPU cannot compute in bf16, as the end of a sentence: "this processor has no AVX512_BF16". Empty: it can.
std::string why_no_bfloat16();

// The process ends by force, from another thread: a thread that waits for a device from now on never returns. An aborted
// communicator lets half-reduced numbers through, which must not reach a file.
void hold_device_waits() noexcept;
// Called after every wait for a device.
void return_unless_held();

}  // namespace simclr
