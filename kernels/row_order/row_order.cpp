// Checks and dispatch of the three row movements.
#include "kernels/row_order/row_order.h"

namespace simclr {
namespace {

void check(const ConstFloatMatrix& from, const ConstFloatMatrix& to, int64_t shards) {
  SIMCLR_CHECK(from.rows == to.rows && from.cols == to.cols && from.stride >= from.cols && to.stride >= to.cols,
               "[{}, {}] with stride {} into [{}, {}] with stride {}", from.rows, from.cols, from.stride, to.rows,
               to.cols, to.stride);
  SIMCLR_CHECK(shards >= 1 && from.rows % (2 * shards) == 0, "{} rows do not split into {} shards of two views",
               from.rows, shards);
}

}  // namespace

void shards_to_global_order(const Exec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global) {
  check(by_shard, global, shards);
  std::visit([&](const auto& device) { detail::shards_to_global_order(device, by_shard, shards, global); }, exec);
}

void global_to_shard_order(const Exec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard) {
  check(global, by_shard, shards);
  std::visit([&](const auto& device) { detail::global_to_shard_order(device, global, shards, by_shard); }, exec);
}

void add_rows(const Exec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum) {
  SIMCLR_CHECK(other.rows == sum.rows && other.cols == sum.cols, "[{}, {}] added to [{}, {}]", other.rows, other.cols,
               sum.rows, sum.cols);
  std::visit([&](const auto& device) { detail::add_rows(device, other, sum); }, exec);
}

}  // namespace simclr
