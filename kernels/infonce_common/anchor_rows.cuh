// The rows of an InfoNceProblem as kernels take them. Only for *.cu files.
#pragma once

#include <cstdint>

#include "kernels/common/views.h"
#include "kernels/infonce_common/infonce_problem.h"

namespace simclr::detail {

// Plain numbers, and the rows of e_all some floats apart.
struct AnchorRows {
  const float* e_all;  // [2B, C]
  int64_t stride, columns, batch, shard_images, first_shard;
  int shards;

  __device__ const float* row(int64_t global) const { return e_all + global * stride; }
  __device__ int64_t positive_of(int64_t global) const { return global < batch ? global + batch : global - batch; }
  // Global row of the rank's anchor, which counts shard after shard.
  __device__ int64_t global_row(int64_t anchor) const {
    const int64_t part = anchor / shard_images, shard = first_shard + part / 2, view = part % 2;
    return view * batch + shard * shard_images + anchor % shard_images;
  }
  // Among the anchors of all ranks: where a global row stands.
  __device__ int64_t place_by_shards(int64_t global) const {
    const int64_t view = global / batch, image = global % batch;
    return (2 * (image / shard_images) + view) * shard_images + image % shard_images;
  }
};

inline AnchorRows anchor_rows(const ConstFloatMatrix& e_all, const InfoNceProblem& p) {
  return {e_all.data, e_all.stride, p.columns, p.batch, p.shard_images, p.first_shard, static_cast<int>(p.shards)};
}

}  // namespace simclr::detail
