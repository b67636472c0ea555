// Which tiles a rank meets in streaming InfoNCE, in which order, and where its scratch lies. No arithmetic of the loss.
//
// Rows and columns are cut into tiles of 128 by their global number. With T tiles, rounded up to a power of two, the
// work goes in rounds d = 0..T-1: row tile I meets column tile I xor d. So the order of a row's sum is a function of B
// alone; and in one round the pairs {I, I xor d} are disjoint, so that one task may serve both of its tiles.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

#include "kernels/common/parallel.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce/streaming_tile.h"

namespace simclr::detail {

class StreamingPlan {
 public:
  explicit StreamingPlan(const InfoNceProblem& p)
      : batch_(p.batch), first_image_(p.first_shard * p.shard_images), images_(p.shards * p.shard_images) {
    SIMCLR_CHECK(images_ >= 1, "a rank without images");
    const int64_t last_of_view_1 = (first_image_ + images_ - 1) / kTile;
    first_tile_[0] = first_image_ / kTile;
    count_[0] = last_of_view_1 - first_tile_[0] + 1;
    first_tile_[1] = std::max((batch_ + first_image_) / kTile, last_of_view_1 + 1);  // one tile may serve both views
    count_[1] = std::max<int64_t>((batch_ + first_image_ + images_ - 1) / kTile - first_tile_[1] + 1, 0);
  }

  int64_t tiles() const { return (2 * batch_ + kTile - 1) / kTile; }  // of all 2B rows
  int64_t rounds() const { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tiles()))); }
  // The tiles with rows of this rank are slots 0..slots()-1.
  int64_t slots() const { return count_[0] + count_[1]; }
  int64_t tile_of(int64_t slot) const {
    return slot < count_[0] ? first_tile_[0] + slot : first_tile_[1] + slot - count_[0];
  }
  // -1: no row of this tile is this rank's.
  int64_t slot_of(int64_t tile) const {
    if (tile >= first_tile_[0] && tile < first_tile_[0] + count_[0]) return tile - first_tile_[0];
    if (tile >= first_tile_[1] && tile < first_tile_[1] + count_[1]) return count_[0] + tile - first_tile_[1];
    return -1;
  }
  // Where a global row of this rank lies in memory of slots() * 128 rows.
  int64_t local_row(int64_t global_row) const { return slot_of(global_row / kTile) * kTile + global_row % kTile; }

  // Rows of a tile, from its start, that hold all rows of this rank; multiples of kRowStep.
  struct Rows {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };
  Rows rows_of(int64_t tile) const {
    int64_t begin = kTile, end = 0;
    for (const int64_t view : {0, 1}) {
      const int64_t low = std::max(view * batch_ + first_image_ - tile * kTile, int64_t{0});
      const int64_t high = std::min(view * batch_ + first_image_ + images_ - tile * kTile, kTile);
      if (low < high) begin = std::min(begin, low), end = std::max(end, high);
    }
    return {begin / kRowStep * kRowStep, round_up(end, kRowStep)};
  }

  // f(row tile, column tile, rows, both, thread) for every meeting. both: the rows of the column tile are served too,
  // then f gets all rows. That pays where the rank wants more rows of the two tiles than one tile has. f does not
  // throw. done [slots()] is scratch. No barrier between rounds: a meeting waits for its own tiles only.
  template <typename F>
  void for_each_meeting(const CpuExec& exec, std::span<int32_t> done, bool may_pair, F&& f) const {
    std::ranges::fill(done, 0);  // rounds that a slot has behind it
    const auto wait_for = [&](int64_t slot, int32_t round) {
      const std::atomic_ref<int32_t> rounds_done(done[static_cast<size_t>(slot)]);
      for (int32_t now = rounds_done.load(); now != round; now = rounds_done.load()) rounds_done.wait(now);
    };
    const auto finish = [&](int64_t slot, int32_t round) {
      const std::atomic_ref<int32_t> rounds_done(done[static_cast<size_t>(slot)]);
      rounds_done.store(round + 1);
      rounds_done.notify_all();
    };
    // Taken in this order, so that whatever is waited for has been taken by a thread that runs.
    std::atomic<int64_t> next = 0;
    parallel_for(exec, exec.threads, [&](int64_t, int thread) {
      for (int64_t task = next++; task < rounds() * slots(); task = next++) {
        const int64_t slot = task % slots(), row_tile = tile_of(slot), column_tile = row_tile ^ (task / slots());
        const auto round = static_cast<int32_t>(task / slots());
        const bool both = may_pair && pairs(row_tile, column_tile);
        if (both && column_tile < row_tile) continue;
        const int64_t other = both ? slot_of(column_tile) : slot;
        wait_for(slot, round);
        wait_for(other, round);
        if (column_tile < tiles()) f(row_tile, column_tile, both ? Rows{0, kTile} : rows_of(row_tile), both, thread);
        finish(slot, round);
        if (both) finish(other, round);
      }
    });
  }

 private:
  bool pairs(int64_t tile, int64_t other) const {
    return other != tile && other < tiles() && slot_of(other) >= 0 &&
           rows_of(tile).count() + rows_of(other).count() > kTile;
  }

  int64_t batch_, first_image_, images_;
  int64_t first_tile_[2], count_[2];
};

}  // namespace simclr::detail
