// How much memory this process has, how much more it could get, and how much it may ever have: of the machine, or of
// the control groups that it runs in (a container, a Slurm job).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace simclr {

// What could be taken now without driving others out: MemAvailable of the machine, or what is left to the tightest
// control group (v2: memory.max, v1: memory.limit_in_bytes; file cache that can be dropped counts as free), whichever
// is less. 0 where the system does not say. root: where /proc and /sys stand.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

// The most that a set of processes can hold together, however little is free now: cache can be given back, swap counts.
struct MemoryBound {
  int64_t bytes = 0;
  // The same in all processes of a control group of one host, whatever it is called in their containers. 0: of all
  // processes of the host.
  uint64_t group = 0;
  std::string name = {};  // of the control group as /proc calls it; empty: the host
};

// Those that this process stands under: the host's (MemTotal and SwapTotal), first, then each control group's that has
// less (v2: memory.max and memory.swap.max; v1: memory.limit_in_bytes and memory.memsw.limit_in_bytes), the innermost
// first. Empty where the system does not say.
std::vector<MemoryBound> memory_bounds(const std::filesystem::path& root = "/");

// Of this process, now and at most since its start (VmRSS, VmHWM). 0 where the system does not say.
int64_t resident_bytes();
int64_t peak_resident_bytes();
// Of what is resident, all but pages of files and memory that is shared with others (RssAnon).
int64_t anonymous_bytes();

}  // namespace simclr
