// Stands in for cuda_device.cpp in a build without CUDA.
#include "src/device/choose_device.h"

namespace simclr {

GpuProbe probe_gpus() {
  return {.count = 0, .reason = "this program was built without CUDA"};
}

GpuFacts read_gpu(int) {
  fail(ExitCode::kOther, "internal error: a GPU in a build without CUDA");
}

int64_t free_gpu_bytes() {
  fail(ExitCode::kOther, "internal error: a GPU in a build without CUDA");
}

std::shared_ptr<Device> make_cuda_device(const CudaDeviceOptions&) {
  fail(ExitCode::kOther, "internal error: a GPU in a build without CUDA");
}

}  // namespace simclr
