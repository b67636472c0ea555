// How a CPU may compute a convolution, as a user asks for it. A GPU takes what cuDNN offers and ignores this.
#pragma once

namespace simclr {

// auto: each of the three convolutions of a layer by the table in winograd_table.h. direct: none by Winograd. winograd:
// by Winograd wherever the library can, faster or not.
enum class ConvolutionAlgorithm { kAuto, kDirect, kWinograd };

}  // namespace simclr
