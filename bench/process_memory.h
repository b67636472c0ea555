// Memory of this process as Linux counts it, for the programs that run once and print what they took.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "kernels/common/error.h"

namespace simclr {

// "VmHWM", the most memory so far, or "VmRSS", the memory now: bytes of this process that are in the machine's memory.
inline int64_t memory_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  fail(ExitCode::kOther, "no {} in /proc/self/status", name);
}

}  // namespace simclr
