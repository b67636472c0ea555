// What stands between the loss and the collectives: rows in the order of shards (as ranks hold and exchange them)
// against rows in the global order [view 1 of 0..B-1 ; view 2 of 0..B-1] (as formulas and seeds write them).
// Row v*n + i of shard s (view v, image i of the shard) is global row v*B + s*n + i.
#pragma once

#include "kernels/common/exec.h"
#include "kernels/common/views.h"

namespace simclr {

// by_shard and global are [shards * 2n, C], all S shards of the global batch; B = shards * n. Copies rows, C columns of
// each; the two do not overlap. Synchronous on the CPU. No scratch.
void shards_to_global_order(const Exec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global);
void global_to_shard_order(const Exec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard);

// sum += other, both [rows, C]. One addition an element, so no order to keep. Synchronous on the CPU. No scratch.
void add_rows(const Exec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum);

namespace detail {
void shards_to_global_order(const CpuExec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global);
void global_to_shard_order(const CpuExec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard);
void add_rows(const CpuExec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum);

void shards_to_global_order(const CudaExec& exec, const ConstFloatMatrix& by_shard, int64_t shards,
                            const FloatMatrix& global);
void global_to_shard_order(const CudaExec& exec, const ConstFloatMatrix& global, int64_t shards,
                           const FloatMatrix& by_shard);
void add_rows(const CudaExec& exec, const ConstFloatMatrix& other, const FloatMatrix& sum);
}  // namespace detail

}  // namespace simclr
