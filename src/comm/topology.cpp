#include "src/comm/topology.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "src/comm/gather.h"

namespace simclr {
namespace {

CoreMask cores_of(pid_t process) {
  CoreMask mask{};
  // Fails for more than 4096 cores, or a parent of another user: an empty mask, which counts as unknown.
  if (::sched_getaffinity(process, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) mask.fill(0);
  return mask;
}

int count_of(const CoreMask& mask) {
  int count = 0;
  for (const uint64_t word : mask) count += std::popcount(word);
  return count;
}

bool has(const CoreMask& mask, int core) {
  return (mask[core / 64] >> (core % 64) & 1) != 0;
}

template <size_t N>
void put(const std::string& text, std::array<char, N>& field) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), N - 1));
}

PlaceFacts place_of_this_process() {
  PlaceFacts place;
  put(host_name(), place.host);
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  put(boot_id, place.boot_id);
  place.allowed = cores_of(0);
  place.launcher_cores = std::max(count_of(place.allowed), count_of(cores_of(::getppid())));
  return place;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

Topology make_topology(int rank, std::span<const PlaceFacts> places) {
  const auto node_of = [&](int r) { return std::pair(places[r].host, places[r].boot_id); };
  Topology topology;
  topology.rank = rank;
  topology.size = static_cast<int>(places.size());
  topology.local_size = 0;
  std::set<decltype(node_of(0))> nodes;
  for (int r = 0; r < topology.size; ++r) {
    nodes.insert(node_of(r));
    topology.hosts.emplace_back(places[r].host.data());
    topology.allowed_cores.push_back(std::max(count_of(places[r].allowed), 1));
    topology.launcher_cores.push_back(places[r].launcher_cores);
    int neighbors = 0;
    for (int other = 0; other < topology.size; ++other) neighbors += node_of(other) == node_of(r);
    topology.local_sizes.push_back(neighbors);
    if (r < rank && node_of(r) == node_of(rank)) ++topology.local_rank;
  }
  topology.local_size = topology.local_sizes[rank];
  topology.nodes = static_cast<int>(nodes.size());
  topology.node = static_cast<int>(std::distance(nodes.begin(), nodes.find(node_of(rank))));

  double share = 0;
  for (int core = 0; core < static_cast<int>(64 * places[rank].allowed.size()); ++core) {
    if (!has(places[rank].allowed, core)) continue;
    int users = 0;
    for (int r = 0; r < topology.size; ++r) users += node_of(r) == node_of(rank) && has(places[r].allowed, core);
    share += 1.0 / users;
  }
  topology.fair_cores = std::max(static_cast<int>(share + 1e-6), 1);
  return topology;
}

Topology discover_topology(Collectives& collectives) {
  return make_topology(collectives.rank(), gather(collectives, place_of_this_process()));
}

int choose_threads(const Topology& topology, int wanted) {
  return wanted > 0 ? wanted : topology.fair_cores;
}

std::optional<std::string> binding_warning(const Topology& topology, int wanted) {
  for (int r = 0; r < topology.size; ++r) {
    const int allowed = topology.allowed_cores[r], launcher = topology.launcher_cores[r];
    const int threads = wanted > 0 ? wanted : std::max(launcher / topology.local_sizes[r], 1);
    if (allowed >= threads) continue;
    const std::string who = topology.size > 1 ? fmt::format("rank {} ({})", r, topology.hosts[r]) : "this process";
    if (launcher > allowed)
      return fmt::format(
          "{} is bound to {} of {} cores, fewer than the {} threads it could use; start with mpirun --bind-to none "
          "(srun: --cpus-per-task={})",
          who, allowed, launcher, threads, threads);
    return fmt::format("{} may use {} cores, fewer than run.threads: {}; lower run.threads, or set it to auto", who,
                       allowed, threads);
  }
  return std::nullopt;
}

}  // namespace simclr
