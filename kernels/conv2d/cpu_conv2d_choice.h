// By which algorithm a CPU computes each of a layer's three convolutions: what is tried, and the text that a checkpoint
// keeps of what was taken.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/common/data_type.h"
#include "kernels/conv2d/winograd_table.h"

namespace simclr::conv2d {

// kWinograd: each shard's call transforms the weights. kWinogradShared: they are transformed once for all shards; not
// for backward weights. Their bits differ.
enum class CpuAlgorithm { kDirect, kWinograd, kWinogradShared };

inline constexpr std::array kPasses = {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights};
using CpuAlgorithms = std::array<CpuAlgorithm, 3>;               // by Pass
using CpuCandidates = std::array<std::vector<CpuAlgorithm>, 3>;  // by Pass, in the order in which they are tried

// What params ask for, by the table; the last is always there (kDirect). Error(kDevice) when params.algorithm is
// winograd and `library_has_winograd` is not, or for bf16.
CpuCandidates candidates_of(const Conv2dParams& params, DataType stored, bool library_has_winograd);
// Exactly those of a choice(); Error(kDevice) for a text that is none.
CpuCandidates candidates_of(const Conv2dParams& params, const std::string& choice);

// "winograd_shared; winograd_shared; direct", without the second for images.
std::string choice_text(const Conv2dParams& params, const CpuAlgorithms& algorithms);

}  // namespace simclr::conv2d
