// Loops over independent units (shards, samples, tiles) on the CPU. Never used to split a sum: the bits of a result
// must not depend on the number of threads.
#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

#include "kernels/common/exec.h"

// Compiles a function once per instruction set (AVX-512, AVX2 with FMA, plain) and picks at load time. Levels, not
// names of processors: "arch=haswell" would be picked on processors of that model alone. Only what is inlined into the
// function is compiled with it: mark helpers [[gnu::always_inline]], write no lambdas. The bits of a result may differ
// between instruction sets, which the promise allows (docs/decisions/0002-shards-and-ordered-sums.md).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SIMCLR_NO_MULTIVERSION)
#define SIMCLR_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SIMCLR_MULTIVERSION
#endif

namespace simclr {

// f(index, thread) for index in [0, count), handed out one at a time. Inside f a library sees one thread, whatever
// the thread count of the loop: its blocking, and so its bits, stay the same. An exception leaves the loop as itself.
template <typename F>
void parallel_for(const CpuExec& exec, int64_t count, F&& f) {
  std::exception_ptr error;
#pragma omp parallel num_threads(exec.threads)
  {
    omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < count; ++i) {
      try {
        f(i, omp_get_thread_num());
      } catch (...) {
#pragma omp critical(simclr_parallel_for)
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace simclr
