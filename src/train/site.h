// Where a run computes and with whom. On the CPU both communicators are one; on GPUs tensors travel by NCCL in device
// memory, and what ranks agree on outside the step is staged through it.
#pragma once

#include "src/comm/collectives.h"
#include "src/device/context.h"

namespace simclr {

struct Site {
  Context& context;
  Collectives& collectives;  // on the memory of the device
  Collectives& host;         // on the memory of the host; not for the step
};

}  // namespace simclr
