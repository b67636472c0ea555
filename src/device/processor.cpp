#include "src/device/processor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <unordered_set>

#include "kernels/common/onednn.h"

namespace simclr {
namespace {

// Instruction sets that oneDNN, libm or our own kernels choose their code by.
constexpr std::string_view kRelevantFlags[] = {
    "sse4_1",   "avx",      "f16c",     "fma",         "avx2",        "avx_vnni",    "avx512f",  "avx512dq",
    "avx512cd", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
    "amx_bf16", "asimd",    "asimdhp",  "bf16",        "sve",         "sve2"};

// The value of the first "key<tabs>: value" line; empty when there is none.
std::string value_of(std::string_view cpuinfo, std::string_view key) {
  size_t begin = 0;
  while (begin < cpuinfo.size()) {
    const std::string_view line = cpuinfo.substr(begin, cpuinfo.find('\n', begin) - begin);
    begin += line.size() + 1;
    const size_t colon = line.find(':');
    if (colon == line.npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == line.npos ? "" : std::string(line.substr(first));
  }
  return "";
}

}  // namespace

std::string describe_cpuinfo(std::string_view cpuinfo) {
  std::string model = value_of(cpuinfo, "model name");
  if (model.empty())  // ARM gives numbers
    model = fmt::format("implementer {} part {}", value_of(cpuinfo, "CPU implementer"), value_of(cpuinfo, "CPU part"));
  std::string flags = value_of(cpuinfo, "flags");
  if (flags.empty()) flags = value_of(cpuinfo, "Features");
  std::istringstream words(flags);
  std::unordered_set<std::string> present;
  for (std::string word; words >> word;) present.insert(word);
  std::string relevant;
  for (const std::string_view flag : kRelevantFlags)
    if (present.contains(std::string(flag))) relevant += fmt::format("{}{}", relevant.empty() ? "" : " ", flag);
  return fmt::format("{}, {}", model, relevant.empty() ? "no known vector instructions" : relevant);
}

std::string processor_model() {
  std::ostringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return fmt::format("{}, L1d {}K, L2 {}K", describe_cpuinfo(text.str()), ::sysconf(_SC_LEVEL1_DCACHE_SIZE) / 1024,
                     ::sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024);
}

// The factors are of a training step, in processor time against AVX2 on an AMD EPYC (Milan): 1.6 with AVX for ResNet-10 of
// width 8 and ResNet-18 of width 64, 2.3 with SSE4.1 for the former.
std::string slow_convolutions_warning() {
  const std::string reason = onednn::why_no_avx2();
  if (reason.empty()) return "";
  return fmt::format(
      "{}: a training step takes about 1.6 times as long as with AVX2, with SSE4.1 alone 2.3 times; use a processor "
      "with "
      "AVX2, or remove the limit",
      reason);
}

}  // namespace simclr
