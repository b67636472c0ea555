#include "kernels/common/onednn.h"

#include <cstdlib>

#include "kernels/common/views.h"

namespace simclr {
namespace {

// What the library uses: what the processor has, up to DNNL_MAX_CPU_ISA.
bool uses(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), all = static_cast<unsigned>(wanted);
  return (isa & all) == all;
}

// "DNNL_MAX_CPU_ISA=AVX"; empty: the environment sets no limit.
std::string isa_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (const char* limit = std::getenv(name)) return fmt::format("{}={}", name, limit);
  return "";
}

}  // namespace

int64_t channel_block() {
  static const int64_t block = uses(dnnl::cpu_isa::avx512_core) ? 16 : 8;
  return block;
}

namespace onednn {

std::string why_no_bfloat16() {
  if (uses(dnnl::cpu_isa::avx512_core_bf16)) return "";
#if defined(__x86_64__)
  if (const std::string limit = isa_limit(); !limit.empty() && __builtin_cpu_supports("avx512bf16"))
    return limit + " hides its AVX512_BF16";
#endif
  return "this processor has no AVX512_BF16";
}

std::string why_no_avx2() {
#if defined(__x86_64__)
  if (uses(dnnl::cpu_isa::avx2)) return "";
  if (const std::string limit = isa_limit(); !limit.empty() && __builtin_cpu_supports("avx2"))
    return limit + " hides its AVX2";
  return "this processor has no AVX2";
#else
  return "";
#endif
}

std::string instruction_set() {
  using Isa = dnnl::cpu_isa;
  for (const auto& [isa, name] : {std::pair(Isa::avx512_core_amx, "AVX-512 with AMX"),
                                  {Isa::avx512_core_bf16, "AVX-512 with BF16"},
                                  {Isa::avx512_core_vnni, "AVX-512 with VNNI"},
                                  {Isa::avx512_core, "AVX-512"},
                                  {Isa::avx2_vnni, "AVX2 with VNNI"},
                                  {Isa::avx2, "AVX2"},
                                  {Isa::avx, "AVX"},
                                  {Isa::sse41, "SSE4.1"}})
    if (uses(isa)) return name;
  return fmt::format("instruction set {:#x}", static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

std::string bfloat16_instructions() {
  return uses(dnnl::cpu_isa::avx512_core_amx) ? "AMX" : "AVX512_BF16";
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

}  // namespace onednn
}  // namespace simclr
