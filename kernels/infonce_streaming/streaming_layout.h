// What is where in the workspace of streaming InfoNCE on the CPU, in bytes from its start, each at a multiple of
// 256.
#pragma once

#include "kernels/infonce_streaming/streaming_plan.h"

namespace simclr::detail {

struct StreamingLayout {
  int64_t rows, width, slot_rows;  // 2B and C padded; 128 * slots
  int64_t e = 0;                   // float [rows, width], zero beyond 2B and C
  int64_t panels = 0;              // float [rows / 32][C][32]
  int64_t row_sums = 0;            // forward: double [slot_rows]
  int64_t row_tops = 0;            // forward: float [slot_rows]
  int64_t done = 0;                // int32 [tiles]
  int64_t columns = 0;             // backward: float [2][rows], a number of each row as a key
  int64_t grad = 0;                // backward: float [slot_rows, width]
  int64_t bytes = 0;

  explicit StreamingLayout(const InfoNceProblem& p) : StreamingLayout(p, StreamingPlan(p)) {}
  StreamingLayout(const InfoNceProblem& p, const StreamingPlan& plan)
      : rows(plan.tiles() * kTile), width(round_up(p.columns, kColumnPadding)), slot_rows(plan.slots() * kTile) {
    constexpr int64_t kFloat = sizeof(float), kDouble = sizeof(double);
    e = take(rows * width * kFloat);
    panels = take(rows * p.columns * kFloat);
    row_sums = take(slot_rows * kDouble);
    row_tops = take(slot_rows * kFloat);
    done = take(plan.tiles() * kFloat);
    columns = take(2 * rows * kFloat);
    grad = take(slot_rows * width * kFloat);
  }

 private:
  int64_t take(int64_t count) {
    const int64_t at = bytes;
    bytes += round_up(count, 256);
    return at;
  }
};

}  // namespace simclr::detail
