// The problem that both algorithms of InfoNCE solve: which rows of the global batch this rank has as anchors, and the
// settings of the loss. The formulas are in kernels/infonce/infonce.h.
#pragma once

#include <cstdint>

#include "kernels/common/data_type.h"

namespace simclr {

// Global row order of e_all and grad_keys: [view 1 of images 0..B-1 ; view 2 of images 0..B-1].
// Row order of a shard's anchors:          [view 1 of its n images ; view 2 of its n images], shard after shard.
struct InfoNceProblem {
  int64_t batch = 0;         // B >= 2, images of the global batch
  int64_t shard_images = 0;  // n >= 1, images of one shard
  int64_t shards = 0;        // consecutive shards that this rank owns; einsum: a power of two
  int64_t first_shard = 0;   // (first_shard + shards) * n <= B
  int64_t columns = 0;       // C, width of an embedding
  double temperature = 0.5;  // tau > 0
  double margin = 0.0;       // 0 <= margin < 2, subtracted from the positive similarity
  bool decoupled = false;    // then margin = 0
  // What the factors of products are rounded to; kBfloat16 is for streaming on CUDA.
  DataType products = DataType::kFloat32;

  int64_t anchors() const { return shards * 2 * shard_images; }  // rows of this rank
  int64_t keys() const { return 2 * batch; }
  // Global row of row `row` (0..2n-1) of this rank's shard `shard`.
  int64_t global_row(int64_t shard, int64_t row) const {
    const int64_t view = row / shard_images;
    return view * batch + (first_shard + shard) * shard_images + row % shard_images;
  }
};

// SIMCLR_CHECKs the conditions next to the members.
void check_infonce_problem(const InfoNceProblem& problem);

}  // namespace simclr
