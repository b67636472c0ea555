// Refuses, before the first step, a run whose ranks cannot all have the memory that they will hold at their peak: the
// system would end it without a word, perhaps hours later. What is free at this moment does not count, since that
// changes; GPU memory is no matter of this check, since all of it is taken when the parts are built.
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

// What a rank tells the others of itself: the host's memory that it will hold at its peak, and under which bounds
// (src/base/memory.h).
struct MemoryClaim {
  static constexpr size_t kMostBounds = 8;
  struct Bound {
    int64_t bytes = 0;
    uint64_t group = 0;  // 0: of the host
  };
  int64_t bytes = 0;  // without what the system can drop or ranks share
  int32_t node = 0;
  int32_t bound_count = 0;
  std::array<Bound, kMostBounds> bounds{};
};

// A bound of this rank, and what the ranks under it will hold together.
struct MemoryDemand {
  size_t bound = 0;  // its place in the claim
  int64_t bytes = 0;
  int64_t allowed = 0;
  int ranks = 0;  // this one included
};
std::vector<MemoryDemand> memory_demands(int rank, std::span<const MemoryClaim> claims);

// The worst of those that exceed their bound by more than the claims may be wrong.
std::optional<MemoryDemand> find_overdraft(std::span<const MemoryDemand> demands);

// Collective. Throws AgreedError(kDevice) that tells what is needed, what is there, whose bound that is, and the
// largest batch that fits.
void require_memory(const TrainingSetup& setup, const Topology& topology, Collectives& ranks);

}  // namespace simclr
