// The host as a device: copies are memcpy, and everything is done on return.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/common/views.h"
#include "src/device/device.h"

namespace simclr {
namespace {

std::atomic<bool> waits_are_held = false;

class CpuReadback final : public Readback {
 public:
  explicit CpuReadback(size_t bytes) : memory_(bytes) {}
  void start(const void* device) override { std::memcpy(memory_.data(), device, memory_.size()); }
  const std::byte* wait() override { return memory_.data(); }

 private:
  std::vector<std::byte> memory_;
};

class CpuUpload final : public Upload {
 public:
  explicit CpuUpload(size_t bytes) : memory_(bytes) {}
  std::byte* host() override { return memory_.data(); }
  void start(void* device, size_t bytes) override {
    SIMCLR_CHECK(bytes <= memory_.size(), "{} bytes of {} on the way to the device", bytes, memory_.size());
    if (bytes > 0) std::memcpy(device, memory_.data(), bytes);
  }

 private:
  std::vector<std::byte> memory_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, Precision precision) : threads_(threads), precision_(precision) {
    SIMCLR_CHECK(threads >= 1, "a device needs at least one thread, got {}", threads);
    SIMCLR_CHECK(precision != Precision::kTf32, "no CPU has tf32");
    SIMCLR_CHECK(precision == Precision::kFp32 || why_no_bfloat16().empty(), "bf16, but {}", why_no_bfloat16());
  }
  bool is_cpu() const override { return true; }
  int threads() const override { return threads_; }
  Exec exec() const override { return CpuExec{.threads = threads_, .precision = precision_}; }
  DataType storage() const override {
    return precision_ == Precision::kBf16 ? DataType::kBfloat16 : DataType::kFloat32;
  }

  std::byte* allocate(size_t bytes) override {
    // Large blocks are untouched pages: they count only when they are used. total < bytes: the sum has wrapped around,
    // as for a negative count of elements.
    const size_t total = bytes + kBufferAlignment + sizeof(Origin);
    const Origin origin = total > bytes ? take(total) : Origin{};
    if (!origin.block)
      fail(ExitCode::kDevice, "no memory for a buffer of {} bytes; use a smaller batch or network", bytes);
    void* start = static_cast<std::byte*>(origin.block) + sizeof origin;
    size_t room = total - sizeof origin;
    auto* const memory = static_cast<std::byte*>(std::align(kBufferAlignment, bytes, start, room));
    std::memcpy(memory - sizeof origin, &origin, sizeof origin);
    return memory;
  }
  void release(std::byte* memory) noexcept override {
    Origin origin;
    std::memcpy(&origin, memory - sizeof origin, sizeof origin);
    if (origin.mapped_bytes > 0)
      ::munmap(origin.block, origin.mapped_bytes);
    else
      std::free(origin.block);
  }

  void upload(void* device, const void* host, size_t bytes) override { copy(device, host, bytes); }
  void download(void* host, const void* device, size_t bytes) override { copy(host, device, bytes); }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* device, size_t bytes) override {
    if (bytes > 0) std::memset(device, 0, bytes);
  }
  void synchronize() override {}
  std::unique_ptr<Readback> make_readback(size_t bytes) override { return std::make_unique<CpuReadback>(bytes); }
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return std::make_unique<CpuUpload>(bytes); }

  std::string model() const override { return "CPU"; }
  std::string library_version() const override {
    const auto* v = dnnl::version();
    return fmt::format(
        "oneDNN {}.{}.{} with {}, channels in blocks of {}{}", v->major, v->minor, v->patch, onednn::instruction_set(),
        channel_block(),
        precision_ == Precision::kBf16 ? fmt::format(", bf16 by {}", onednn::bfloat16_instructions()) : "");
  }

 private:
  // Stands before the aligned memory.
  struct Origin {
    void* block = nullptr;
    size_t mapped_bytes = 0;  // 0: of calloc
  };

  // Large blocks are mapped, and asked for in pages of 2 MiB where the kernel gives those on demand: a convolution of
  // 512 channels touches more pages of 4 KiB than the processor remembers. And calloc refuses a block that is larger
  // than the machine's memory, so that it could not be distinguished from a run that does not fit as a
  // whole: src/train/memory_check.h reports that, with what fits.
  static Origin take(size_t bytes) noexcept {
    constexpr size_t kMapped = size_t{4} << 20;
    if (bytes < kMapped) return {.block = std::calloc(bytes, 1)};
    void* const block =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return {};
    ::madvise(block, bytes, MADV_HUGEPAGE);  // a kernel without them says no, and nothing is lost
    return {.block = block, .mapped_bytes = bytes};
  }

  int threads_;
  Precision precision_;
};

}  // namespace

void hold_device_waits() noexcept {
  waits_are_held = true;
}

void return_unless_held() {
  while (waits_are_held) ::pause();
}

std::shared_ptr<Device> make_cpu_device(int threads, Precision precision) {
  return std::make_shared<CpuDevice>(threads, precision);
}

std::string why_no_bfloat16() {
  return onednn::why_no_bfloat16();
}

}  // namespace simclr
