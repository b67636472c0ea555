// A 64-bit fingerprint of floats by their bits, to compare replicas: any order of work gives the same number.
//   f = sum over i of mix(bits_i + (first + i + 1) * 0x9E3779B97F4A7C15)   modulo 2^64
// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), a bijection: one differing word always changes f.
// Not for files, where sha256 stands.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/common/exec.h"

namespace simclr {

// *sum += the terms of values, counted from position `first` on. sum is in the memory of the device, and set to zero by
// the caller before the first run of values. Synchronous on the CPU. No scratch.
void add_fingerprint(const Exec& exec, std::span<const float> values, int64_t first, uint64_t* sum);

// One overload per device.
namespace detail {
void add_fingerprint(const CpuExec&, std::span<const float> values, int64_t first, uint64_t* sum);
void add_fingerprint(const CudaExec&, std::span<const float> values, int64_t first, uint64_t* sum);
}  // namespace detail

}  // namespace simclr
