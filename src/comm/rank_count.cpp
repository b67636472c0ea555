#include "src/comm/rank_count.h"

#include <fmt/format.h>

#include <string>

#include "kernels/common/error.h"

namespace simclr {

void require_rank_count(int ranks, const TrainSettings& train) {
  if (train.reduction == Reduction::kFastest) {
    if (train.global_batch % ranks != 0)
      fail(ExitCode::kUsage, "{} ranks do not divide train.global_batch: {}; start with a number of ranks that does",
           ranks, train.global_batch);
    return;
  }
  std::string good;
  bool fits = false;
  for (int count = 1; count <= train.shards; count *= 2) {
    if (train.shards % count != 0) break;
    fits = fits || count == ranks;
    good += fmt::format("{}{}", good.empty() ? "" : ", ", count);
  }
  if (!fits)
    fail(ExitCode::kUsage, "{} ranks do not fit train.shards: {}; start with {} ranks, or set train.reduction: fastest",
         ranks, train.shards, good);
}

int shards_of_run(int ranks, const TrainSettings& train) {
  return train.reduction == Reduction::kFastest ? ranks : train.shards;
}

}  // namespace simclr
