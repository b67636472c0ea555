// The memory orders of feature maps and images, and the channels that are stored beyond those that count.
#pragma once

#include <cstdint>

namespace simclr {

// Of feature maps [N, channels, height, width] and images [N, channels, height, width].
enum class Layout {
  kBlocked,  // [N, ceil(channels/block), height, width, block]: nChw16c or nChw8c of oneDNN
  kNhwc,     // [N, height, width, stored channels]
  kNchw,     // [N, channels, height, width], nothing padded
};

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Channels of feature maps are stored in blocks of this many: 16 with AVX-512, else 8 (one vector register). The last
// block is padded with zeros, which stay zero through every op. Constant within a process.
int64_t channel_block();
inline constexpr int64_t kMaxChannelBlock = 16;

// Columns of a matrix in the network, so that it is also a feature map of height and width 1.
inline int64_t padded_cols(int64_t cols) {
  return round_up(cols, channel_block());
}

// Channels of an image in NHWC, those beyond the image's own zero, so that every row of pixels is aligned.
inline constexpr int kCudaImageChannels = 8;

}  // namespace simclr
