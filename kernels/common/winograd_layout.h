// How oneDNN lays out the weights of a 3x3 convolution that it computes by Winograd's F(4x4, 3x3), where it takes them
// transformed already: 6x6 values for each pair of channels, in blocks of 16 by 16 channels.
#pragma once

#include <cstdint>

namespace simclr {

// [out / out_group][6][6][in / in_group][out_group][in_group][16 in][16 out], where out and in count blocks.
struct WinogradLayout {
  static constexpr int64_t kBlock = 16;  // channels
  int64_t out = 0, in = 0;               // blocks; the last one may be filled up with zeros
  int64_t out_group = 1, in_group = 1;   // blocks that lie together
  int64_t elements() const { return 36 * out * in * kBlock * kBlock; }
};

}  // namespace simclr
