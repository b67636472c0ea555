// Which tiles a rank meets in streaming InfoNCE, in which order, and where its scratch lies. No arithmetic of the loss.
//
// Rows and columns are cut into tiles of 128 by their global number. With T tiles, rounded up to a power of two, the
// work goes in rounds d = 0..T-1: row tile I meets column tile I xor d. So the order of a row's sum is a function of B
// alone; and in one round the pairs {I, I xor d} are disjoint, so that one task may serve both of its tiles. Groups of
// 2 or 4 neighboring tiles meet in the same way.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

#include "kernels/common/parallel.h"
#include "kernels/common/views.h"
#include "kernels/infonce_common/infonce_problem.h"
#include "kernels/infonce_streaming/streaming_tile.h"

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
  // Where a global row of this rank is in memory of slots() * 128 rows.
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
  // then f gets all rows. That pays where the rank needs more rows of the two tiles than one tile has. f does not
  // throw. done [tiles()] is scratch. A task is a group of neighboring tiles, with the group that it meets in as many
  // rounds: the order of a tile's meetings stays what it is, its memory stays in the cache. No barrier: a task waits
  // for its two groups only.
  template <typename F>
  void for_each_meeting(const CpuExec& exec, std::span<int32_t> done, bool may_pair, F&& f) const {
    std::ranges::fill(done, 0);  // tasks that a group has behind it
    const int64_t size = group_size(exec.threads), groups = (tiles() + size - 1) / size, steps = rounds() / size;
    const auto wait_for = [&](int64_t group, int32_t step) {
      const std::atomic_ref<int32_t> steps_done(done[group]);
      for (int32_t now = steps_done.load(); now != step; now = steps_done.load()) steps_done.wait(now);
    };
    const auto finish = [&](int64_t group, int32_t step) {
      const std::atomic_ref<int32_t> steps_done(done[group]);
      steps_done.store(step + 1);
      steps_done.notify_all();
    };
    const auto meet = [&](int64_t group, int64_t round, int thread) {
      for (int64_t tile = group * size; tile < std::min((group + 1) * size, tiles()); ++tile) {
        const int64_t other = tile ^ round;
        if (slot_of(tile) < 0 || other >= tiles()) continue;
        const bool both = may_pair && pairs(tile, other);
        if (both && other < tile) continue;
        f(tile, other, both ? Rows{0, kTile} : rows_of(tile), both, thread);
      }
    };
    // Taken in this order, so that whatever is waited for has been taken by a thread that runs.
    std::atomic<int64_t> next = 0;
    parallel_for(exec, exec.threads, [&](int64_t, int thread) {
      for (int64_t task = next++; task < steps * groups; task = next++) {
        const auto step = static_cast<int32_t>(task / groups);
        const int64_t group = task % groups, other = group ^ step;
        if (other < group) continue;  // the task of `other`
        const bool two = other != group && other < groups;
        wait_for(group, step);
        if (two) wait_for(other, step);
        for (int64_t round = step * size; round < (step + 1) * size; ++round) {
          meet(group, round, thread);
          if (two) meet(other, round, thread);
        }
        finish(group, step);
        if (two) finish(other, step);
      }
    });
  }

 private:
  // Tiles of a task: few enough that all threads find tasks.
  int64_t group_size(int threads) const {
    int64_t size = 4;
    while (size > 1 && slots() < 8 * threads * size) size /= 2;
    return size;
  }
  bool pairs(int64_t tile, int64_t other) const {
    return other != tile && other < tiles() && slot_of(other) >= 0 &&
           rows_of(tile).count() + rows_of(other).count() > kTile;
  }

  int64_t batch_, first_image_, images_;
  int64_t first_tile_[2], count_[2];
};

}  // namespace simclr::detail
