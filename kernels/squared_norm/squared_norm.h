// Sums of squares of many arrays at once, in double: the norms of parameters and gradients that LARS scales by, and the
// gradient norm of the log. Not a norm yet: the caller takes the root.
//
//   squares[r] = sum over k of values_r[k]^2,   total = sum over r of squares[r]
//
// The order of an array's sum follows from its length alone: blocks of 4,096 elements counted from its start; in a
// block element k is added to lane k mod 256, then the lanes in the balanced binary tree; then the blocks in that tree,
// where one without a neighbor goes up as it is. The total takes squares as such a block takes elements. A square of a
// float is exact in double, so both devices get the same bits. NaN and infinities show in the result; no finite float
// overflows it.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/common/exec.h"

namespace simclr {

struct NormRun {
  const float* values = nullptr;
  int64_t elements = 0;
  // Where given, the square is that of values[k] + scale * other[k], computed in double and rounded to float once:
  // a gradient with its weight decay, as lars_update takes it.
  const float* other = nullptr;
  float scale = 0;
};

// The arrays of one call, and the same table in the memory of the device; on the CPU both are the same memory.
struct NormTable {
  std::span<const NormRun> runs;
  const NormRun* on_device = nullptr;

  NormTable(std::span<const NormRun> host, const NormRun* device) : runs(host), on_device(device) {}
  template <typename Runs>  // implicit, for the CPU: anything that is a span of runs
  NormTable(const Runs& host) requires std::is_convertible_v<const Runs&, std::span<const NormRun>>
      : runs(host), on_device(runs.data()) {}
};

// Workspace: 8 bytes a block.
ScratchNeed squared_norms_scratch(std::span<const NormRun> runs);

// squares [runs], in the memory of the device as everything here. Synchronous on the CPU.
void squared_norms(const Exec& exec, const NormTable& table, double* squares);

// total = the sum of squares [count], another memory. No scratch. Synchronous on the CPU.
void total_squared_norm(const Exec& exec, const double* squares, int64_t count, double* total);

// What each device implements; arguments are checked already.
namespace detail {
inline constexpr int64_t kNormBlock = 4096;
inline constexpr int64_t kNormLanes = 256;

void squared_norms(const CpuExec& exec, const NormTable& table, double* squares);
void total_squared_norm(const CpuExec& exec, const double* squares, int64_t count, double* total);

void squared_norms(const CudaExec& exec, const NormTable& table, double* squares);
void total_squared_norm(const CudaExec& exec, const double* squares, int64_t count, double* total);
}  // namespace detail

}  // namespace simclr
