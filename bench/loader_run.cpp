// One timed run of the loader as training uses it, for scripts/loader_table.py: images read, decoded where they are
// files, and made into two views each, in one thread and without a network. Prints one JSON object. The figure is the
// processor time of this process, which other programs on the machine hardly change.
//   loader_run CONFIG IMAGES [section.key=value]...
#include <algorithm>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/run_main.h"
#include "src/augment/view_loader.h"
#include "src/augment/view_params.h"
#include "src/base/print.h"
#include "src/base/progress_line.h"
#include "src/config/loader.h"

namespace simclr {
namespace {

constexpr int64_t kBatch = 32;

double processor_seconds() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) fail(ExitCode::kOther, "no clock of this process's time");
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void run(int argc, char** argv) {
  if (argc < 3) fail(ExitCode::kUsage, "loader_run CONFIG IMAGES [section.key=value]...");
  const Settings settings = load_settings(argv[1], {argv + 3, argv + argc});
  const int64_t steps = std::max<int64_t>(1, std::stoll(argv[2]) / kBatch);
  const auto images = open_dataset(settings.data, Split::kTrain);
  const ViewParams params = make_view_params(settings.views, settings.data.image_size, channel_statistics(*images));
  const SamplePlan plan({.seed = settings.run.seed, .count = images->count(), .global_batch = kBatch, .shards = 1});
  ViewLoader loader(*images, plan, params, {.seed = settings.run.seed, .shard_count = 1, .end_step = steps + 1});
  loader.next();  // warms up
  const double start_s = monotonic_seconds(), start_processor_s = processor_seconds();
  for (int64_t step = 0; step < steps; ++step) loader.next();
  print_out(nlohmann::json{{"images", steps * kBatch},
                           {"processor_s", processor_seconds() - start_processor_s},
                           {"wall_s", monotonic_seconds() - start_s}}
                .dump() +
            "\n");
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_main(argc, argv, simclr::run);
}
