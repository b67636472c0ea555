// Time of the InfoNCE op on the GPU, forward and backward, of all anchors of the global batch: one rank that owns every
// shard, C = 128. A time is that of one call among twenty that are queued together, so it has no launch in it unless
// launching takes longer than computing. Not the loss of several ranks: nothing is gathered.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/infonce/infonce.h"
#include "src/device/choose_device.h"
#include "src/device/context.h"

namespace simclr {
namespace {

constexpr int64_t kColumns = 128;
constexpr int kCalls = 20;

std::vector<float> unit_rows(int64_t rows) {
  PhiloxStream random(PhiloxKey{1, 2}, 0, 0, 0);
  std::vector<float> values(static_cast<size_t>(rows * kColumns));  // [rows, C]
  for (size_t begin = 0; begin < values.size(); begin += kColumns) {
    double square = 0;
    for (size_t c = 0; c < kColumns; ++c) {
      values[begin + c] = random.uniform(-1.0F, 1.0F);
      square += values[begin + c] * values[begin + c];
    }
    for (size_t c = 0; c < kColumns; ++c) values[begin + c] /= static_cast<float>(std::sqrt(square));
  }
  return values;
}

// Arguments: images of the global batch B, shards S.
void infonce_on_gpu(benchmark::State& state) {
  const int64_t batch = state.range(0), shards = state.range(1), keys = 2 * batch;
  const InfoNceProblem problem{.batch = batch,
                               .shard_images = batch / shards,
                               .shards = shards,
                               .first_shard = 0,
                               .columns = kColumns,
                               .temperature = 0.1,
                               .margin = 0.0};
  Context context(make_cuda_device({}));
  context.reserve(infonce_scratch(problem));
  const auto matrix = [&](const Buffer& b) { return Matrix{b.as<float>().data(), keys, kColumns, kColumns}; };
  const Buffer e = context.allocate_elements<float>(keys * kColumns);
  const Buffer grad_anchors = context.allocate_elements<float>(keys * kColumns);
  const Buffer grad_keys = context.allocate_elements<float>(keys * kColumns);
  const Buffer memory = context.allocate(infonce_saved_bytes(problem));
  const Buffer shard_loss = context.allocate_elements<double>(shards);
  const InfoNceSaved saved = infonce_saved(problem, memory.as<std::byte>());
  const std::vector<float> rows = unit_rows(keys);
  context.device().upload(e.as<float>().data(), rows.data(), rows.size() * sizeof(float));
  for (auto _ : state) {
    for (int call = 0; call < kCalls; ++call) {
      infonce_forward(context.exec(), matrix(e), problem, saved, shard_loss.as<double>());
      infonce_backward(context.exec(), matrix(e), problem, saved, matrix(grad_anchors), matrix(grad_keys));
    }
    context.device().synchronize();
  }
  using benchmark::Counter;
  const double flops = 6.0 * static_cast<double>(keys) * static_cast<double>(keys) * kColumns * kCalls;
  state.counters["call_s"] = Counter(kCalls, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["FLOP/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
}

BENCHMARK(infonce_on_gpu)
    ->ArgNames({"B", "S"})
    ->ArgsProduct({{512, 1024, 4096}, {1, 8}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
