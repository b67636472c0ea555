// The processor as far as the bits of a result may depend on it: libraries choose their code by instruction set and
// cache sizes. Compared between ranks at start and recorded in checkpoints.
#pragma once

#include <string>
#include <string_view>

namespace simclr {

// "AMD EPYC 9654, avx2 fma avx512f ..., L1d 32K, L2 1024K"
std::string processor_model();

// The part of it that comes from the text of /proc/cpuinfo.
std::string describe_cpuinfo(std::string_view cpuinfo);

}  // namespace simclr
