// One GPU as a device: a stream for everything that the rank computes, cuBLAS and cuDNN bound to it.
#include <cstring>
#include <string_view>

#include "kernels/common/views.h"
#include "src/device/choose_device.h"
#include "src/device/cuda_handles.h"

namespace simclr {
namespace {

// cuBLAS takes memory of its own during a call unless it has been given some; NVIDIA's advice for Hopper is 32 MiB.
constexpr size_t kBlasWorkspaceBytes = size_t{32} << 20;

class CudaReadback final : public Readback {
 public:
  CudaReadback(cudaStream_t stream, size_t bytes)
      : stream_(stream), bytes_(bytes), memory_(make_pinned_memory(bytes)), arrived_(make_event()) {}
  void start(const void* device) override {
    SIMCLR_CUDA(cudaMemcpyAsync(memory_.get(), device, bytes_, cudaMemcpyDeviceToHost, stream_));
    SIMCLR_CUDA(cudaEventRecord(arrived_.get(), stream_));
  }
  const std::byte* wait() override {
    SIMCLR_CUDA(cudaEventSynchronize(arrived_.get()));
    return_unless_held();
    return memory_.get();
  }

 private:
  cudaStream_t stream_;
  size_t bytes_;
  PinnedMemory memory_;
  CudaEvent arrived_;
};

class CudaUpload final : public Upload {
 public:
  CudaUpload(cudaStream_t stream, size_t bytes)
      : stream_(stream), bytes_(bytes), memory_(make_pinned_memory(bytes)), left_(make_event()) {}
  std::byte* host() override {
    SIMCLR_CUDA(cudaEventSynchronize(left_.get()));  // at once when nothing was recorded
    return memory_.get();
  }
  void start(void* device, size_t bytes) override {
    SIMCLR_CHECK(bytes <= bytes_, "{} bytes of {} on the way to the device", bytes, bytes_);
    if (bytes > 0) SIMCLR_CUDA(cudaMemcpyAsync(device, memory_.get(), bytes, cudaMemcpyHostToDevice, stream_));
    SIMCLR_CUDA(cudaEventRecord(left_.get(), stream_));
  }

 private:
  cudaStream_t stream_;
  size_t bytes_;
  PinnedMemory memory_;
  CudaEvent left_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaDeviceOptions& options)
      : ordinal_(options.ordinal), threads_(options.threads), precision_(options.precision) {
    SIMCLR_CUDA(cudaSetDevice(ordinal_));
    stream_ = make_stream();
    options.beat();
    blas_ = make_cublas(stream_.get());
    blas_workspace_ = make_device_memory(kBlasWorkspaceBytes);
    SIMCLR_CUBLAS(cublasSetWorkspace(blas_.get(), blas_workspace_.get(), kBlasWorkspaceBytes));
    options.beat();
    dnn_ = make_cudnn(stream_.get());
    options.beat();
  }
  ~CudaDevice() override = default;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  bool is_cpu() const override { return false; }
  int threads() const override { return threads_; }
  Exec exec() const override {
    CudaExec exec;
    exec.stream = stream_.get();
    exec.blas = blas_.get();
    exec.dnn = dnn_.get();
    exec.precision = precision_;
    return exec;
  }
  DataType storage() const override {
    return precision_ == Precision::kBf16 ? DataType::kBfloat16 : DataType::kFloat32;
  }

  std::byte* allocate(size_t bytes) override {
    DeviceMemory memory = make_device_memory(bytes);
    zero(memory.get(), bytes);
    synchronize();
    return memory.release();
  }
  void release(std::byte* memory) noexcept override { cudaFree(memory); }

  void upload(void* device, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    SIMCLR_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()));
    synchronize();  // pinned or not: the host's memory is free again
  }
  void download(void* host, const void* device, size_t bytes) override {
    if (bytes > 0) SIMCLR_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()));
    synchronize();
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) SIMCLR_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get()));
  }
  void zero(void* device, size_t bytes) override {
    if (bytes > 0) SIMCLR_CUDA(cudaMemsetAsync(device, 0, bytes, stream_.get()));
  }
  void synchronize() override {
    SIMCLR_CUDA(cudaStreamSynchronize(stream_.get()));
    return_unless_held();
  }
  std::unique_ptr<Readback> make_readback(size_t bytes) override {
    return std::make_unique<CudaReadback>(stream_.get(), bytes);
  }
  std::unique_ptr<Upload> make_upload(size_t bytes) override {
    return std::make_unique<CudaUpload>(stream_.get(), bytes);
  }

  std::string model() const override {
    cudaDeviceProp properties{};
    SIMCLR_CUDA(cudaGetDeviceProperties(&properties, ordinal_));
    return properties.name;
  }
  std::string library_version() const override {
    int runtime = 0, driver = 0, blas = 0;
    SIMCLR_CUDA(cudaRuntimeGetVersion(&runtime));
    SIMCLR_CUDA(cudaDriverGetVersion(&driver));
    SIMCLR_CUBLAS(cublasGetVersion(blas_.get(), &blas));
    const auto dnn = static_cast<int>(cudnnGetVersion());
    return fmt::format("CUDA {}.{} (driver {}.{}), cuBLAS {}, cuDNN {}.{}.{}, channels in blocks of {}", runtime / 1000,
                       runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, blas, dnn / 10000, dnn / 100 % 100,
                       dnn % 100, channel_block());
  }

 private:
  int ordinal_, threads_;
  Precision precision_;
  CudaStream stream_;
  DeviceMemory blas_workspace_;
  CublasHandle blas_;
  CudnnHandle dnn_;
};

}  // namespace

std::shared_ptr<Device> make_cuda_device(const CudaDeviceOptions& options) {
  return std::make_shared<CudaDevice>(options);
}

GpuProbe probe_gpus() {
  GpuProbe probe;
  const cudaError_t status = cudaGetDeviceCount(&probe.count);
  if (status != cudaSuccess) {
    probe.count = 0;
    cudaGetLastError();  // the program continues without a GPU
    int driver = 0;
    const bool no_driver = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
    probe.reason = no_driver ? "no NVIDIA driver is loaded" : cudaGetErrorString(status);
  } else if (probe.count == 0) {
    probe.reason = "the driver shows no GPU";
  }
  return probe;
}

GpuFacts read_gpu(int ordinal) {
  cudaDeviceProp properties{};
  SIMCLR_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  GpuFacts facts;
  static_assert(sizeof(facts.uuid) == sizeof(properties.uuid.bytes));
  std::memcpy(facts.uuid.data(), properties.uuid.bytes, facts.uuid.size());
  const std::string_view name = properties.name;
  name.copy(facts.name.data(), facts.name.size() - 1);
  facts.ordinal = ordinal;
  return facts;
}

int64_t free_gpu_bytes() {
  size_t free = 0, total = 0;
  SIMCLR_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

}  // namespace simclr
