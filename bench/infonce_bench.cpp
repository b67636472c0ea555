// Time of the InfoNCE op, forward and backward, without normalisation and without other ranks: one rank that owns all
// 8 shards, C = 128, two threads. GFLOP/s count the three products, 6 (2B)^2 C; the exponentials come on top.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/infonce/infonce.h"
#include "src/device/context.h"

namespace simclr {
namespace {

void fill_unit_rows(const Matrix& e) {
  PhiloxStream random(PhiloxKey{1, 2}, 0, 0, 0);
  for (int64_t i = 0; i < e.rows; ++i) {
    double square = 0;
    for (int64_t c = 0; c < e.cols; ++c) {
      e.row(i)[c] = random.uniform(-1.0F, 1.0F);
      square += e.row(i)[c] * e.row(i)[c];
    }
    for (int64_t c = 0; c < e.cols; ++c) e.row(i)[c] /= static_cast<float>(std::sqrt(square));
  }
}

void run_infonce(benchmark::State& state, bool with_backward) {
  constexpr int64_t kColumns = 128, kShards = 8;
  const int64_t keys = state.range(0), batch = keys / 2;
  const InfoNceProblem problem{.batch = batch,
                               .shard_images = batch / kShards,
                               .shards = kShards,
                               .first_shard = 0,
                               .columns = kColumns,
                               .temperature = 0.1,
                               .margin = 0.0};
  Context context(2);
  context.reserve(infonce_scratch(problem));
  const auto matrix = [&](const Buffer& b) { return Matrix{b.as<float>().data(), keys, kColumns, kColumns}; };
  const Buffer e = context.allocate_elements<float>(keys * kColumns);
  const Buffer grad_anchors = context.allocate_elements<float>(keys * kColumns);
  const Buffer grad_keys = context.allocate_elements<float>(keys * kColumns);
  const Buffer memory = context.allocate(infonce_saved_bytes(problem));
  const InfoNceSaved saved = infonce_saved(problem, memory.as<std::byte>());
  std::vector<double> shard_loss(kShards);
  fill_unit_rows(matrix(e));
  for (auto _ : state) {
    infonce_forward(context.exec(), matrix(e), problem, saved, shard_loss);
    if (with_backward)
      infonce_backward(context.exec(), matrix(e), problem, saved, matrix(grad_anchors), matrix(grad_keys));
    benchmark::ClobberMemory();
  }
  const double products = with_backward ? 3 : 1;
  const double flops = 2 * products * static_cast<double>(keys * keys * kColumns);
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["MB"] = static_cast<double>(context.allocated_bytes()) * 1e-6;
}

void infonce_forward_only(benchmark::State& state) {
  run_infonce(state, false);
}
void infonce_forward_backward(benchmark::State& state) {
  run_infonce(state, true);
}

BENCHMARK(infonce_forward_only)->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(infonce_forward_backward)->Arg(512)->Arg(1024)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
