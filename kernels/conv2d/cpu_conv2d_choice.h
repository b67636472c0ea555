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
// for backward weights. kGemm: im2col and a matrix product on plain NCHW copies of the maps, for the shapes and
// processors for which the library's direct convolution is its reference code (AVX2: backward weights of maps of 2x2
// and less; AVX and SSE4.1: every shape), which is hundreds of times slower. The bits of all four differ.
enum class CpuAlgorithm { kDirect, kWinograd, kWinogradShared, kGemm };

inline constexpr std::array kPasses = {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights};
using CpuAlgorithms = std::array<CpuAlgorithm, 3>;               // by Pass
using CpuCandidates = std::array<std::vector<CpuAlgorithm>, 3>;  // by Pass, in the order in which they are tried

// What params ask for, by the table; the last, kDirect, is always there, and stands before kGemm, too:
// the library's reference code is taken only as the last. Error(kDevice) when params.algorithm is
// winograd and `library_has_winograd` is not, or for bf16.
CpuCandidates candidates_of(const Conv2dParams& params, DataType stored, bool library_has_winograd);
// Exactly those of a choice(); Error(kDevice) for a text that is none.
CpuCandidates candidates_of(const Conv2dParams& params, const std::string& choice);

// "winograd_shared; winograd_shared; direct", without the second for images.
std::string choice_text(const Conv2dParams& params, const CpuAlgorithms& algorithms);

}  // namespace simclr::conv2d
