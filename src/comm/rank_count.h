// Which numbers of ranks a run can have.
#pragma once

#include <cstdint>

#include "src/config/settings.h"

namespace simclr {

// Error(kUsage) with the counts that would do. `ordered`: a power of two that divides train.shards;
// `fastest`: any divisor of train.global_batch.
void require_rank_count(int ranks, const TrainSettings& train);

// Shards of the global batch: train.shards; under `fastest` one per rank.
int shards_of_run(int ranks, const TrainSettings& train);

}  // namespace simclr
