// What the ops share of oneDNN: engine, one stream per thread, the number of threads a primitive is made for, and its
// exceptions turned into ours. Scratch memory is always the caller's (the library's own breaks across threads).
#pragma once

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"

namespace simclr::onednn {

// Empty where convolutions and products of bfloat16 run at their speed (AVX512_BF16 or AMX), else why not, as the end
// of a sentence: "this processor has no AVX512_BF16". DNNL_MAX_CPU_ISA counts, as it does for the library.
std::string why_no_bfloat16();
// The newest instruction set that the library uses, by the processor and DNNL_MAX_CPU_ISA, and so its bits: "AVX2",
// "AVX-512", "AVX-512 with BF16".
std::string instruction_set();
// Empty where the library has AVX2, else why not, likewise: "this processor has no AVX2". x86 alone.
std::string why_no_avx2();
// What those products are made with, and so their bits: "AVX512_BF16" or "AMX".
std::string bfloat16_instructions();

const dnnl::engine& cpu_engine();
dnnl::stream& thread_stream();  // of the calling thread

// A primitive bakes in the thread count that it is created under, and its bits follow from it: shards are computed
// by primitives created under this scope and executed inside parallel_for.
class SingleThreadScope {
 public:
  SingleThreadScope() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~SingleThreadScope() { omp_set_num_threads(before_); }
  SingleThreadScope(const SingleThreadScope&) = delete;
  SingleThreadScope& operator=(const SingleThreadScope&) = delete;

 private:
  int before_;
};

// Runs f; a dnnl::error becomes Error(kDevice) that names the operation.
template <typename F>
auto guarded(const char* operation, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    fail(ExitCode::kDevice, "oneDNN: {}: {} (status {})", operation, e.what(), to_int(e.status));
  }
}

}  // namespace simclr::onednn
