// CPU: copies of whole rows, parallel over (shard, view).
#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/row_order/row_order.h"

namespace simclr::detail {
namespace {

// f(row by shards, global row)
template <typename F>
void for_each_row(const CpuExec& exec, int64_t rows, int64_t shards, F&& f) {
  const int64_t images = rows / (2 * shards), batch = shards * images;
  parallel_for(exec, 2 * shards, [&](int64_t part, int) {
    const int64_t shard = part / 2, view = part % 2;
    for (int64_t i = 0; i < images; ++i) f(part * images + i, view * batch + shard * images + i);
  });
}

}  // namespace

void shards_to_global_order(const CpuExec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global) {
  for_each_row(exec, by_shard.rows, shards, [&](int64_t shard_row, int64_t global_row) {
    std::copy_n(by_shard.row(shard_row), by_shard.cols, global.row(global_row));
  });
}

void global_to_shard_order(const CpuExec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard) {
  for_each_row(exec, global.rows, shards, [&](int64_t shard_row, int64_t global_row) {
    std::copy_n(global.row(global_row), global.cols, by_shard.row(shard_row));
  });
}

void add_rows(const CpuExec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum) {
  constexpr int64_t kRowsPerTask = 64;
  parallel_for(exec, (sum.rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t end = std::min(sum.rows, (task + 1) * kRowsPerTask);
    for (int64_t i = task * kRowsPerTask; i < end; ++i) {
      for (int64_t c = 0; c < sum.cols; ++c) sum.row(i)[c] += other.row(i)[c];
    }
  });
}

}  // namespace simclr::detail
