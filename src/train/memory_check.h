// Refuses, before the first step, a run whose ranks together would exceed the memory of a host or control group at
// their peak: the system would kill it without a message, perhaps hours later. Compares with the limits, not with what
// is free at the moment, which changes. Not for GPU memory, all of which is allocated when the setup is built.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/comm/collectives.h"
#include "src/comm/topology.h"
#include "src/train/training_setup.h"

namespace simclr {

// What a rank reports to the others: the host memory that it will hold at its peak, and the bounds on it
// (src/base/memory.h).
struct MemoryClaim {
  static constexpr size_t kMostBounds = 8;
  struct Bound {
    int64_t bytes = 0;
    uint64_t group = 0;  // control group; 0: the host
  };
  int64_t bytes = 0;  // without what the system can drop or ranks share
  int32_t node = 0;
  int32_t bound_count = 0;
  std::array<Bound, kMostBounds> bounds{};
};

// A bound of this rank, and what all ranks under that bound will hold together.
struct MemoryDemand {
  int32_t bound = 0;  // index into MemoryClaim::bounds
  int64_t bytes = 0;
  int64_t allowed = 0;
  int ranks = 0;  // this one included
};
std::vector<MemoryDemand> memory_demands(int rank, std::span<const MemoryClaim> claims);

// The demand that exceeds its bound most, by more than the error of the estimates.
std::optional<MemoryDemand> find_overdraft(std::span<const MemoryDemand> demands);

// Collective. Throws AgreedError(kDevice) with the memory needed, the bound and its owner, and the largest batch that
// fits.
void require_memory(const TrainingSetup& setup, const Topology& topology, Collectives& ranks);

}  // namespace simclr
