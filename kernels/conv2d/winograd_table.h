// Which convolutions are faster by Winograd's F(4x4, 3x3) (Lavin and Gray 2016, arXiv:1509.09308, section 4.3) than
// direct: a table of measured shapes, so that the choice, and with it the bits, never follows from a clock, the number
// of ranks or the number of threads. Measured with oneDNN 2.6 and AVX-512: docs/decisions/0006-winograd.md.
#pragma once

#include "kernels/conv2d/conv2d.h"

namespace simclr::conv2d {

enum class Pass { kForward, kBackwardData, kBackwardWeights };
constexpr size_t index_of(Pass pass) {  // of arrays by Pass
  return static_cast<size_t>(pass);
}

// Whether F(4x4, 3x3) can compute it at all: a 3x3 window with stride 1 over feature maps.
bool is_winograd_shape(const Conv2dParams& params);
// And is faster, by the table, on AVX-512. Depends on the samples of a shard, the map and the channels alone.
bool winograd_is_faster(const Conv2dParams& params, Pass pass);
// The same, forward and in backward data, where all shards of a rank share one transform of the weights.
bool shared_winograd_is_faster(const Conv2dParams& params);

}  // namespace simclr::conv2d
