// How a rank's part of the global batch follows from settings and shape.
#include "src/loss/infonce_problem.h"
#include "kernels/common/numbers.h"

namespace simclr {

InfoNceProblem make_infonce_problem(const Collectives& collectives, const LossSettings& settings,
                                    const LossShape& shape) {
  SIMCLR_CHECK(shape.shards >= 1 && shape.shards % collectives.size() == 0, "{} shards on {} ranks", shape.shards,
               collectives.size());
  SIMCLR_CHECK(shape.batch % shape.shards == 0, "{} images in {} shards", shape.batch, shape.shards);
  const int64_t local_shards = shape.shards / collectives.size();
  return {.batch = shape.batch,
          .shard_images = shape.shard_images(),
          .shards = local_shards,
          .first_shard = collectives.rank() * local_shards,
          .columns = shape.columns,
          .temperature = settings.temperature,
          .margin = settings.margin,
          .decoupled = settings.decoupled,
          .products = settings.products};
}

Work infonce_work(const InfoNceProblem& problem, int products) {
  return {.flops = products * 2 * as_double(problem.anchors()) * as_double(problem.keys()) * as_double(problem.columns),
          .bytes = 0};
}

std::string describe_infonce(const Collectives& collectives, const LossShape& shape) {
  const int ranks = collectives.size();
  return fmt::format("B={} images, 2 views, {} {} x {}: 1 positive and {} negatives per anchor", shape.batch, ranks,
                     ranks == 1 ? "rank" : "ranks", shape.batch / ranks, 2 * shape.batch - 2);
}

}  // namespace simclr
