#include "src/comm/device_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/device/choose_device.h"

namespace simclr {
namespace {

struct ProbeFacts {
  int32_t count = 0;
  std::array<char, 160> reason{};
};

// Throws the same text on every rank.
void refuse_shared_gpus(const std::vector<GpuFacts>& gpus, const Topology& topology) {
  for (size_t a = 0; a < gpus.size(); ++a) {
    for (size_t b = a + 1; b < gpus.size(); ++b) {
      if (gpus[a].uuid != gpus[b].uuid) continue;
      throw AgreedError(
          ExitCode::kDevice,
          fmt::format("ranks {} and {} (both on {}) would compute on one GPU ({}); start one rank per GPU, "
                      "or give each rank its own with CUDA_VISIBLE_DEVICES",
                      a, b, topology.hosts[a], gpus[a].name.data()));
    }
  }
}

}  // namespace

DeviceDecision agree_on_device(Collectives& bootstrap, const Topology& topology, DeviceChoice choice) {
  if (choice == DeviceChoice::kCpu) return {};
  const GpuProbe probe = probe_gpus();
  ProbeFacts mine{.count = probe.count};
  std::memcpy(mine.reason.data(), probe.reason.data(), std::min(probe.reason.size(), mine.reason.size() - 1));
  const std::vector<ProbeFacts> all = gather(bootstrap, mine);
  const auto without = std::find_if(all.begin(), all.end(), [](const ProbeFacts& f) { return f.count == 0; });
  if (without != all.end()) {
    const auto rank = without - all.begin();
    const bool none = std::all_of(all.begin(), all.end(), [](const ProbeFacts& f) { return f.count == 0; });
    if (none && choice == DeviceChoice::kAuto)
      return {.sentence = fmt::format("no GPU: {}; computing on the CPU", without->reason.data())};
    if (none) {
      throw AgreedError(ExitCode::kDevice,
                        fmt::format("run.device: cuda, but there is no GPU: {}; use a machine with one, or cpu or auto",
                                    without->reason.data()));
    }
    throw AgreedError(ExitCode::kDevice,
                      fmt::format("rank {} ({}) sees no GPU ({}) while other ranks do; give every rank one, or set "
                                  "run.device: cpu",
                                  rank, topology.hosts[rank], without->reason.data()));
  }
  DeviceDecision decision;
  decision.cuda = true;
  const GpuFacts gpu = agree_on(bootstrap, [&] {
    decision.ordinal = choose_gpu(probe.count, topology.local_rank, topology.local_size);
    return read_gpu(decision.ordinal);
  });
  refuse_shared_gpus(gather(bootstrap, gpu), topology);
  return decision;
}

}  // namespace simclr
