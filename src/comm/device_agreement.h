// Which kind of device a job computes on, and which GPU each rank: the same decision on every rank, before anything is
// allocated on a device.
#pragma once

#include <string>

#include "src/comm/collectives.h"
#include "src/comm/topology.h"
#include "src/config/settings.h"

namespace simclr {

struct DeviceDecision {
  bool cuda = false;
  int ordinal = 0;       // of this rank's GPU, within what it sees
  std::string sentence;  // why a GPU was wanted and none is used; empty otherwise
};

// Collective. `cpu`: no GPU is looked at. `auto`: GPUs when every rank has one, the CPU when none has. `cuda`: GPUs.
// Throws AgreedError(kDevice), naming ranks and hosts, when only some ranks have a GPU, when a node has fewer GPUs than
// ranks, when two ranks would share one (known by its UUID), and with `cuda` when a rank has none.
DeviceDecision agree_on_device(Collectives& bootstrap, const Topology& topology, DeviceChoice choice);

}  // namespace simclr
