// How CUDA cuts feature maps for batch norm: tiles of channels, and within a shard's group chunks of rows that are
// summed apart. Functions of the shard's shape alone, so that bits depend neither on the number of shards nor on the
// GPU. Not for users of the op.
#pragma once

#include <algorithm>
#include <cstdint>

namespace simclr::batch_norm {

inline constexpr int kTileChannels = 32;

inline int64_t tiles_of(int64_t padded) {
  return (padded + kTileChannels - 1) / kTileChannels;
}

// The most chunks in one group of a shard, for which scratch memory is kept: a shard alone fills a GPU with blocks.
inline int64_t most_chunks(int64_t padded, int groups) {
  constexpr int64_t kBlocksOfShard = 256;
  return std::max<int64_t>(1, kBlocksOfShard / (tiles_of(padded) * groups));
}

// Rows of one chunk, for `rows` rows in one group of a shard.
inline int64_t rows_of_chunk(int64_t rows, int64_t padded, int groups) {
  constexpr int64_t kFewestRows = 256;
  const int64_t most = most_chunks(padded, groups);
  return std::max(kFewestRows, (rows + most - 1) / most);
}

}  // namespace simclr::batch_norm
