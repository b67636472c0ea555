// What the cores of this rank reach at most: what a profile holds the ops against.
#pragma once

#include "kernels/common/cpu_exec.h"

namespace simclr {

struct MachinePeak {
  double flops_per_s = 0;  // fp32
  double bytes_per_s = 0;  // read and written
};

// All threads at once, the best of several rounds, about a second: oneDNN's matrix product of matrices that fit the
// second-level cache, and y = a * x over arrays that no cache holds (STREAM's scale; 128 MiB for a moment).
MachinePeak measure_machine_peak(const CpuExec& exec);

}  // namespace simclr
