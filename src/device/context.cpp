#include "src/device/context.h"

#include "kernels/common/onednn.h"
#include "kernels/common/views.h"

namespace simclr {

Context::Context(int threads) : exec_(CpuExec{.threads = threads}) {
  SIMCLR_CHECK(threads >= 1, "a context needs at least one thread, got {}", threads);
}

int Context::threads() const {
  return std::get<CpuExec>(exec_).threads;
}

void Context::reserve(const ScratchNeed& need) {
  auto& cpu = std::get<CpuExec>(exec_);
  if (need.workspace_bytes > cpu.workspace_bytes) {
    allocated_bytes_ += need.workspace_bytes - cpu.workspace_bytes;
    workspace_ = Buffer(need.workspace_bytes);
    cpu.workspace = workspace_.data();
    cpu.workspace_bytes = need.workspace_bytes;
  }
  if (need.thread_bytes > cpu.thread_scratch_bytes) {
    const size_t each = (need.thread_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    allocated_bytes_ += (each - cpu.thread_scratch_bytes) * static_cast<size_t>(cpu.threads);
    thread_scratch_ = Buffer(each * static_cast<size_t>(cpu.threads));
    cpu.thread_scratch = thread_scratch_.data();
    cpu.thread_scratch_bytes = each;
  }
}

Buffer Context::allocate(size_t bytes) {
  allocated_bytes_ += bytes;
  return Buffer(bytes);
}

std::string Context::library_version() const {
  const auto* v = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}, channels in blocks of {}", v->major, v->minor, v->patch, channel_block());
}

}  // namespace simclr
