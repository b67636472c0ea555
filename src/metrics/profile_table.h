// A profile as a table for people: one row an op, layer after layer as forward goes, each the median over the steps;
// then the sums by kind of op.
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

// Of the steps that have ended; at least one. Ends with a newline.
std::string print_profile(const Profiler& profiler, const ProfileFacts& facts);

}  // namespace simclr
