#include "src/train/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/common/numbers.h"
#include "src/base/memory.h"
#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/train/memory_need.h"

namespace simclr {
namespace {

// Relative error of the estimates: no run that would fit is refused.
constexpr double kDoubt = 0.05;

int64_t on_host(const MemoryNeed& need, const TrainingSetup& p) {
  return need.on_host() + (p.context.device().is_cpu() ? need.on_device() : 0);
}

MemoryClaim make_claim(const MemoryNeed& need, const TrainingSetup& p, int node, std::span<const MemoryBound> bounds) {
  MemoryClaim claim{.bytes = on_host(need, p) - need.file_pages, .node = node};
  for (const MemoryBound& bound : bounds.first(std::min(bounds.size(), MemoryClaim::kMostBounds)))
    claim.bounds.at(claim.bound_count++) = {.bytes = bound.bytes, .group = bound.group};
  return claim;
}

bool stands_under(const MemoryClaim& claim, int node, const MemoryClaim::Bound& bound) {
  if (claim.node != node) return false;
  return bound.group == 0 || std::any_of(claim.bounds.begin(), claim.bounds.begin() + claim.bound_count,
                                         [&](const MemoryClaim::Bound& other) { return other.group == bound.group; });
}

int64_t megabytes(int64_t bytes) {
  return (bytes + 500'000) / 1'000'000;
}

// All bounds as one: what this rank may hold if the others grow with it.
MemoryLimit limit_of(std::span<const MemoryDemand> demands, int64_t held) {
  int64_t more = std::numeric_limits<int64_t>::max() - held;
  for (const MemoryDemand& d : demands) more = std::min(more, (d.allowed - d.bytes) / d.ranks);
  return {.host = std::max<int64_t>(held + more, 1), .device = std::numeric_limits<int64_t>::max()};
}

}  // namespace

std::vector<MemoryDemand> memory_demands(int rank, std::span<const MemoryClaim> claims) {
  const MemoryClaim& mine = claims[rank];
  std::vector<MemoryDemand> demands;
  for (int32_t i = 0; i < mine.bound_count; ++i) {
    MemoryDemand demand{.bound = i, .allowed = mine.bounds.at(i).bytes};
    for (const MemoryClaim& claim : claims) {
      if (!stands_under(claim, mine.node, mine.bounds.at(i))) continue;
      demand.bytes += claim.bytes;
      ++demand.ranks;
    }
    demands.push_back(demand);
  }
  return demands;
}

std::optional<MemoryDemand> find_overdraft(std::span<const MemoryDemand> demands) {
  const auto share = [](const MemoryDemand& d) { return as_double(d.bytes) / std::max(as_double(d.allowed), 1.0); };
  const auto worst = std::max_element(demands.begin(), demands.end(),
                                      [&](const auto& a, const auto& b) { return share(a) < share(b); });
  if (worst == demands.end() || share(*worst) * (1 - kDoubt) <= 1) return std::nullopt;
  return *worst;
}

void require_memory(const TrainingSetup& p, const Topology& topology, Collectives& ranks) {
  const MemoryNeed need = memory_need(p);
  const std::vector<MemoryBound> bounds = memory_bounds();
  const auto demands = memory_demands(topology.rank, gather(ranks, make_claim(need, p, topology.node, bounds)));
  agree_on(ranks, [&] {
    const auto worst = find_overdraft(demands);
    if (!worst) return;
    const MemoryBound& bound = bounds[worst->bound];
    const std::string who = worst->ranks == 1 ? "this rank" : fmt::format("the {} ranks here", worst->ranks);
    const std::string what =
        fmt::format("{} would hold {} MB at the peak, and {} MB", who, megabytes(worst->bytes),
                    (bound.group == 0 ? "the host has" : "the control group " + bound.name + " allows") +
                        fmt::format(" {}", megabytes(worst->allowed)));
    const int64_t batch = p.settings.train.global_batch;
    const int64_t largest = largest_batch(need, limit_of(demands, on_host(need, p)), p);
    if (largest == 0)
      fail(ExitCode::kDevice,
           "train.global_batch {} does not fit into memory: {}; not even {} fits: use a smaller network or smaller "
           "images, or more hosts",
           batch, what, p.geometry.shards);
    fail(ExitCode::kDevice, "train.global_batch {} does not fit into memory: {}; use at most {}, or more hosts", batch,
         what, std::min(largest, batch - p.geometry.shards));
  });
}

}  // namespace simclr
