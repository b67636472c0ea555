#include "src/train/host_tensors.h"

namespace simclr {

std::vector<NamedTensor> named_tensors(ParameterStore& store) {
  std::vector<NamedTensor> tensors;
  for (const auto& p : store.parameters()) tensors.push_back({p.name, TensorType::kFloat32, p.shape, p.value});
  for (const auto& b : store.buffers()) tensors.push_back({b.name, TensorType::kFloat32, b.shape, b.value});
  return tensors;
}

HostTensors::HostTensors(Device& device, const std::vector<NamedTensor>& on_device, Memory memory)
    : device_(device), on_device_(on_device), on_host_(on_device) {
  if (memory == Memory::kShared && device.is_cpu()) return;
  int64_t bytes = 0;
  for (const auto& t : on_device_) bytes += t.bytes();
  memory_ = Buffer(bytes);
  std::byte* next = memory_.data();
  for (auto& t : on_host_) {
    t.data = next;
    next += t.bytes();
  }
}

void HostTensors::download(const Beat& beat) {
  for (size_t i = 0; i < on_host_.size(); ++i) {
    if (on_host_[i].data == on_device_[i].data) continue;
    device_.download(on_host_[i].data, on_device_[i].data, on_host_[i].bytes());
    beat();
  }
}

void HostTensors::upload(const Beat& beat) {
  for (size_t i = 0; i < on_host_.size(); ++i) {
    if (on_host_[i].data == on_device_[i].data) continue;
    device_.upload(on_device_[i].data, on_host_[i].data, on_host_[i].bytes());
    beat();
  }
}

void HostTensors::broadcast(Collectives& host, const Beat& beat) {
  for (const auto& t : on_host_) host.broadcast(std::span(static_cast<float*>(t.data), elements_of(t.shape)), 0);
  upload(beat);
}

}  // namespace simclr
