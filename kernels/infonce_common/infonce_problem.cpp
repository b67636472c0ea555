#include "kernels/infonce_common/infonce_problem.h"

#include <cmath>

#include "kernels/common/error.h"

namespace simclr {

void check_infonce_problem(const InfoNceProblem& p) {
  SIMCLR_CHECK(p.batch >= 2, "a global batch of {} images has no negatives", p.batch);
  SIMCLR_CHECK(p.shard_images >= 1 && p.shards >= 1 && p.first_shard >= 0 && p.columns >= 1,
               "{} shards of {} images from shard {} on, {} columns", p.shards, p.shard_images, p.first_shard,
               p.columns);
  SIMCLR_CHECK((p.first_shard + p.shards) * p.shard_images <= p.batch, "shards {}..{} of {} images in a batch of {}",
               p.first_shard, p.first_shard + p.shards - 1, p.shard_images, p.batch);
  SIMCLR_CHECK(std::isfinite(p.temperature) && p.temperature > 0, "temperature {} is not above 0", p.temperature);
  SIMCLR_CHECK(p.margin >= 0 && p.margin < 2, "margin {} is outside [0, 2)", p.margin);
  SIMCLR_CHECK(!p.decoupled || p.margin == 0, "a margin of {} has no gradient without the positive in the denominator",
               p.margin);
}

}  // namespace simclr
