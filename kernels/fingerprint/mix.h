// The term of one value; for fingerprint_cpu.cpp and fingerprint_cuda.cu.
#pragma once

#include <cstdint>

namespace simclr::detail {

constexpr uint64_t fingerprint_term(uint32_t bits, uint64_t position) {
  uint64_t x = bits + (position + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace simclr::detail
