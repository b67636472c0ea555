#include "kernels/common/onednn.h"

#include "kernels/common/views.h"

namespace simclr {

int64_t channel_block() {
  static const int64_t block = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto core = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    const bool avx512 = (isa & core) == core;
    return avx512 ? 16 : 8;
  }();
  return block;
}

namespace onednn {

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
