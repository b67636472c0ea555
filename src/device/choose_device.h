// Which device a rank computes on: the rule (choose_gpu), what is there (probe_gpus, read_gpu), and the device itself.
// That all ranks choose alike is agreed in src/comm/device_agreement.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "src/base/beat.h"
#include "src/device/device.h"

namespace simclr {

// What this process sees of GPUs.
struct GpuProbe {
  int count = 0;
  std::string reason;  // why there is none: "no NVIDIA driver is loaded", "this program was built without CUDA"
};
GpuProbe probe_gpus();

// Plain bytes: ranks send it to each other.
struct GpuFacts {
  std::array<uint8_t, 16> uuid{};
  std::array<char, 64> name{};
  int32_t ordinal = 0;  // within what the process sees
};
GpuFacts read_gpu(int ordinal);
// Of the GPU that this process computes on.
int64_t free_gpu_bytes();

// The ordinal of a rank's GPU: the only one that it sees (a launcher that gives each rank its own), else the one of its
// place on the node. Error(kDevice) with both numbers when there are fewer GPUs than ranks on the node.
int choose_gpu(int visible, int local_rank, int local_size);

struct CudaDeviceOptions {
  int ordinal = 0;
  int threads = 1;  // of the host
  Precision precision = Precision::kFp32;
  Beat beat = no_beat;  // between the context of the GPU and the start of the libraries, a second or more each
};
std::shared_ptr<Device> make_cuda_device(const CudaDeviceOptions& options);

}  // namespace simclr
