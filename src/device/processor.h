// What the bits of a result may depend on in a processor: libraries choose their code by instruction set and
// cache sizes. Compared between ranks at start and recorded in checkpoints.
#pragma once

#include <string>
#include <string_view>

namespace simclr {

// "AMD EPYC 9654, avx2 fma avx512f ..., L1d 32K, L2 1024K"
std::string processor_model();

// The part of it that comes from the text of /proc/cpuinfo.
std::string describe_cpuinfo(std::string_view cpuinfo);

// One line when convolutions run without AVX2, with the reason and how much slower that is; empty where they have it,
// and on processors of other makes. DNNL_MAX_CPU_ISA counts, as it does for the library.
std::string slow_convolutions_warning();

}  // namespace simclr
