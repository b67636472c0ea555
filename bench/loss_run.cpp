// One timed run of the loss as training computes it, for scripts/loss_table.py: forward and backward from projector
// outputs in two .npy files, one rank, eight shards. Prints one JSON object; Google Benchmark is not used, because the
// peak memory of a process is that of everything which it has run.
//   loss_run einsum|streaming VIEW1.npy VIEW2.npy TEMPERATURE THREADS REPEATS [GRAD1.npy GRAD2.npy]
#include <algorithm>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "bench/process_memory.h"
#include "bench/run_main.h"
#include "src/base/print.h"
#include "src/base/progress_line.h"
#include "src/check_loss/views.h"
#include "src/comm/single_process_collectives.h"
#include "src/device/context.h"
#include "src/loss/contrastive_loss.h"

namespace simclr {
namespace {

constexpr int64_t kShards = 8;

// f(image, view, row among the rows by shards)
template <typename F>
void for_each_row(const LossShape& shape, F&& f) {
  const int64_t n = shape.shard_images();
  for (int64_t image = 0; image < shape.batch; ++image) {
    for (int64_t view = 0; view < 2; ++view) f(image, view, image / n * 2 * n + view * n + image % n);
  }
}

void write_gradients(const FloatMatrix& grad_z, const LossShape& shape, const ViewPair& views, char** paths) {
  std::vector<float> of_view[2];
  for (auto& numbers : of_view) numbers.resize(shape.batch * shape.columns);
  for_each_row(shape, [&](int64_t image, int64_t view, int64_t row) {
    std::copy_n(grad_z.row(row), shape.columns, &of_view[view][image * shape.columns]);
  });
  for (int64_t view = 0; view < 2; ++view)
    write_npy(paths[view], views.views[view].header, std::as_bytes(std::span(of_view[view])));
}

void run(int argc, char** argv) {
  if (argc != 7 && argc != 9)
    fail(ExitCode::kUsage, "loss_run einsum|streaming VIEW1.npy VIEW2.npy TEMPERATURE THREADS REPEATS [GRAD1 GRAD2]");
  const std::string algorithm = argv[1];
  const ViewPair views = read_views(argv[2], argv[3]);
  const LossSettings settings{.algorithm = algorithm == "einsum" ? LossAlgorithm::kEinsum : LossAlgorithm::kStreaming,
                              .temperature = std::stod(argv[4])};
  const LossShape shape{.batch = views.images(), .columns = views.columns(), .shards = kShards};
  Context context(std::stoi(argv[5]));
  SingleProcessCollectives collectives;

  const int64_t rows = 2 * shape.batch;
  const Buffer z_memory = context.allocate_elements<float>(rows * shape.columns);
  const FloatMatrix z{z_memory.as<float>().data(), rows, shape.columns, shape.columns};
  for_each_row(shape, [&](int64_t image, int64_t view, int64_t row) {
    for (int64_t c = 0; c < shape.columns; ++c) z.row(row)[c] = static_cast<float>(views.views[view].at(image, c));
  });

  const int64_t before_bytes = memory_bytes("VmRSS");
  const Buffer grad_memory = context.allocate_elements<float>(z.elements());
  const FloatMatrix grad_z{grad_memory.as<float>().data(), z.rows, z.cols, z.stride};
  const auto loss = make_loss(context, collectives, settings, shape);
  double value = 0;
  nlohmann::json seconds = nlohmann::json::array();
  for (int repeat = -1; repeat < std::stoi(argv[6]); ++repeat) {  // the first one warms up
    const double start_s = monotonic_seconds();
    value = *loss->forward(z);
    loss->backward(grad_z);
    if (repeat >= 0) seconds.push_back(monotonic_seconds() - start_s);
  }
  const int64_t peak_bytes = memory_bytes("VmHWM");
  if (argc == 9) write_gradients(grad_z, shape, views, argv + 7);
  print_out(nlohmann::json{{"loss", value}, {"seconds", seconds}, {"bytes", peak_bytes - before_bytes}}.dump() + "\n");
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_main(argc, argv, simclr::run);
}
