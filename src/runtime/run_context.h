// What a rank computes with: its device, the communicators over the memory of the device and of the host, and the
// heartbeat that shows its progress. On a CPU both communicators are one; on GPUs tensors travel by NCCL in device
// memory, and what ranks agree on outside the step is staged through it. A view: a run's Runtime owns all of it.
#pragma once

#include "src/comm/collectives.h"
#include "src/comm/heartbeat.h"
#include "src/device/context.h"

namespace simclr {

struct RunContext {
  Context& context;
  Collectives& collectives;  // on the memory of the device
  Collectives& host;         // on the memory of the host; not for the step
  Heartbeat& heartbeat;
};

}  // namespace simclr
