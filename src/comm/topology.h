// Where the ranks are and which cores each may use: who shares a node, how many threads a rank should start, and the
// warning when mpirun has bound ranks to too few cores.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/comm/collectives.h"

namespace simclr {

// One bit per core number of the node.
using CoreMask = std::array<uint64_t, 64>;  // up to 4096 cores

// What a rank sends the others about its place. Ranks are on one node when host and boot id are the same.
struct PlaceFacts {
  std::array<char, 64> host{};
  std::array<char, 40> boot_id{};  // of the running kernel; empty where /proc does not show it
  CoreMask allowed{};              // cores that this process may use
  int32_t launcher_cores = 0;      // cores that its parent (mpirun, srun) may use: what an unbound rank would see
};

struct Topology {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of this node
  int node = 0, nodes = 1;
  std::vector<std::string> hosts;   // [W], by rank
  std::vector<int> allowed_cores;   // [W]
  std::vector<int> launcher_cores;  // [W]
  std::vector<int> local_sizes;     // [W]
  int fair_cores = 1;  // this rank's share: each of its cores, divided by the ranks of the node that may use it too

  const std::string& host() const { return hosts[rank]; }
};

Topology discover_topology(Collectives& collectives);
Topology make_topology(int rank, std::span<const PlaceFacts> places);

// Threads for run.threads: the wanted number, or for 0 (auto) this rank's share of its cores, at least 1.
int choose_threads(const Topology& topology, int wanted);

// One text for the whole job when a rank may use fewer cores than it starts threads (0: its share of the node).
std::optional<std::string> binding_warning(const Topology& topology, int wanted);

std::string host_name();

}  // namespace simclr
