#include "kernels/conv2d/winograd_table.h"

#include <algorithm>

namespace simclr::conv2d {
namespace {

constexpr int64_t kTile = 4;              // places of y that one transform serves, along each side
constexpr int64_t kFewestChannels = 24;   // with 16 the transforms cost more than the products save
constexpr double kSmallestShare = 0.65;   // of the tiles' places, those on the map; 13x13 has 169/256, 6x6 only 36/64
constexpr int64_t kFewestTiles = 64;      // of a shard: they share the transform of the weights
constexpr int64_t kFewestOfWeights = 32;  // backward weights, where direct convolution is slow on small maps
// Where the shards share the transform, each of them still reads what it made, 144 bytes for each pair of channels:
// more than a second-level cache holds, and of the larger weights more than the tiles of a small shard are worth.
constexpr int64_t kFewestOfShared = 16, kFewestOfLarge = 32;
constexpr int64_t kMostPairs = 256 * 256;  // of channels, for kFewestOfShared

bool pays(const Conv2dParams& p, int64_t fewest_tiles) {
  if (!is_winograd_shape(p) || std::min(p.in_channels, p.out_channels) < kFewestChannels) return false;
  const int64_t tiles = ((p.height + kTile - 1) / kTile) * ((p.width + kTile - 1) / kTile);  // of a sample
  const double share = as_double(p.height * p.width) / as_double(tiles * kTile * kTile);
  return share >= kSmallestShare && p.samples * tiles >= fewest_tiles;
}

}  // namespace

bool is_winograd_shape(const Conv2dParams& p) {
  return p.kernel == 3 && p.stride == 1 && p.padding == 1 && !p.input_is_images;
}

bool winograd_is_faster(const Conv2dParams& p, Pass pass) {
  return pays(p, pass == Pass::kBackwardWeights ? kFewestOfWeights : kFewestTiles);
}

bool shared_winograd_is_faster(const Conv2dParams& p) {
  return pays(p, p.in_channels * p.out_channels <= kMostPairs ? kFewestOfShared : kFewestOfLarge);
}

}  // namespace simclr::conv2d
