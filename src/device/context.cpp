#include "src/device/context.h"

namespace simclr {

Context::Context(std::shared_ptr<Device> device) : device_(std::move(device)), exec_(device_->exec()) {}

void Context::reserve(const ScratchNeed& need) {
  std::visit([&](auto& exec) { reserve_on(exec, need); }, exec_);
}

void Context::reserve_on(CpuExec& exec, const ScratchNeed& need) {
  if (need.workspace_bytes > exec.workspace_bytes) {
    allocated_bytes_ += need.workspace_bytes - exec.workspace_bytes;
    workspace_ = Buffer(device_, need.workspace_bytes);
    exec.workspace = workspace_.data();
    exec.workspace_bytes = need.workspace_bytes;
  }
  if (need.thread_bytes > exec.thread_scratch_bytes) {
    const size_t each = (need.thread_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    allocated_bytes_ += (each - exec.thread_scratch_bytes) * static_cast<size_t>(exec.threads);
    thread_scratch_ = Buffer(device_, each * static_cast<size_t>(exec.threads));
    exec.thread_scratch = thread_scratch_.data();
    exec.thread_scratch_bytes = each;
  }
}

void Context::reserve_on(CudaExec& exec, const ScratchNeed& need) {
  if (need.workspace_bytes <= exec.workspace_bytes) return;
  device_->synchronize();  // the old scratch may be in use
  allocated_bytes_ += need.workspace_bytes - exec.workspace_bytes;
  workspace_ = Buffer();  // first give back, then take
  workspace_ = Buffer(device_, need.workspace_bytes);
  exec.workspace = workspace_.data();
  exec.workspace_bytes = need.workspace_bytes;
}

Buffer Context::allocate(size_t bytes) {
  allocated_bytes_ += bytes;
  return Buffer(device_, bytes);
}

}  // namespace simclr
