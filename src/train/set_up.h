// The start of everything that computes on all ranks, in the order of the calls: watch each other, choose a device, set
// it up. Fills in RunHandles. Collective, each of them.
#pragma once

#include "src/comm/device_agreement.h"
#include "src/comm/topology.h"
#include "src/config/settings.h"
#include "src/train/run.h"

namespace simclr {

// Until the settings are known: a rank that hangs while it starts is named, too. Shared memory only, since there is no
// run folder yet: ranks on several hosts are watched from there on, and have StartDeadline until then.
void watch_the_start(const Topology& topology, RunHandles& run);

// Before anything is written: a device that the settings can be computed on. AgreedError(kUsage) for a precision that
// it does not have.
DeviceDecision choose_device(const Settings& settings, const Topology& topology, Collectives& bootstrap);

// Once the device is chosen: context, and on GPUs the collectives of their memory.
void set_up_device(const DeviceDecision& decision, const Settings& settings, const Topology& topology, RunHandles& run);

}  // namespace simclr
