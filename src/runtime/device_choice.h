// The device of a run, held against the precisions that its settings ask for. Before anything is written.
#pragma once

#include "src/comm/device_agreement.h"
#include "src/comm/topology.h"
#include "src/config/settings.h"

namespace simclr {

// Collective. A device that the settings can be computed on. AgreedError: kDevice as agree_on_device(), kUsage for a
// precision that the device lacks.
DeviceDecision choose_device(const Settings& settings, const Topology& topology, Collectives& host);

}  // namespace simclr
