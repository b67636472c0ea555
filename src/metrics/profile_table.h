// Prints a profile as a table: one row for each op, in the order of the forward pass, with medians over the steps; then
// the sums by kind of op.
#pragma once

#include <string>

#include "src/device/machine_peak.h"
#include "src/device/profiler.h"

namespace simclr {

struct ProfileFacts {
  int rank = 0, ranks = 1, threads = 1;
  MachinePeak peak;
};

// "convolution", "batch norm", ...
std::string kind_name(OpKind kind);

// Covers the steps that have ended, at least one. The text ends with a newline.
std::string print_profile(const Profiler& profiler, const ProfileFacts& facts);

}  // namespace simclr
