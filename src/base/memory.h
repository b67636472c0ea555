// How much memory this process has, and how much more it could get: of the machine, or of the control group that it
// runs in (a container, a Slurm job).
#pragma once

#include <cstdint>
#include <filesystem>

namespace simclr {

// What could be taken now without driving others out: MemAvailable of the machine, or what is left to the tightest
// control group (v2: memory.max, v1: memory.limit_in_bytes; file cache that can be dropped counts as free), whichever
// is less. 0 where the system does not say. root: where /proc and /sys stand.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

// Of this process, now and at most since its start (VmRSS, VmHWM). 0 where the system does not say.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace simclr
