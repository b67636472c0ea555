// Prints a profile as a trace in Chrome's JSON format (Trace Event Format, Google, 2016: complete events, ph "X"), for
// chrome://tracing and https://ui.perfetto.dev: every span of every step, one line for each rank.
#pragma once

#include <string>

#include "src/metrics/profile_table.h"

namespace simclr {

// Times in microseconds from the first recorded step of this rank on. pid: the rank.
std::string print_trace(const Profiler& profiler, const ProfileFacts& facts);

}  // namespace simclr
