// Tensors of a device as checkpoints need them: with their names, and in memory of the host.
#pragma once

#include <vector>

#include "src/base/beat.h"
#include "src/checkpoint/safetensors.h"
#include "src/comm/collectives.h"
#include "src/device/context.h"
#include "src/nn/parameter_store.h"

namespace simclr {

// Weights and running statistics, in the order of a checkpoint; float32, in the memory of the device.
std::vector<NamedTensor> named_tensors(ParameterStore& store);

class HostTensors {
 public:
  // kOwn: always a copy. kShared: on a CPU the tensors themselves, so that copying costs nothing there.
  enum class Memory { kOwn, kShared };
  // The tensors outlive this.
  HostTensors(Device& device, const std::vector<NamedTensor>& on_device, Memory memory);

  const std::vector<NamedTensor>& all() const { return on_host_; }

  // Every tensor, with a beat after each that is copied.
  void download(const Beat& beat);
  void upload(const Beat& beat);
  // Collective: rank 0's copy to all ranks and their devices.
  void broadcast(Collectives& host, const Beat& beat);

 private:
  Device& device_;
  std::vector<NamedTensor> on_device_, on_host_;
  Buffer memory_;  // of on_host_, if that is a copy
};

}  // namespace simclr
