// Time and memory of the InfoNCE ops, einsum next to streaming, without normalization and without other ranks: one rank
// that owns all 8 shards, C = 128, two threads. GFLOP/s count the products of the formulas, 2 (2B)^2 C forward and 6
// with backward, for both (streaming computes 4 (2B)^2 C); the exponentials come on top.
#include <benchmark/benchmark.h>

#include <cmath>
#include <span>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce_streaming/infonce_streaming.h"
#include "src/device/context.h"

namespace simclr {
namespace {

void fill_unit_rows(const FloatMatrix& e) {
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

constexpr int64_t kColumns = 128, kShards = 8;

InfoNceProblem make_problem(int64_t keys, double temperature) {
  return {.batch = keys / 2,
          .shard_images = keys / 2 / kShards,
          .shards = kShards,
          .first_shard = 0,
          .columns = kColumns,
          .temperature = temperature,
          .margin = 0.0};
}

FloatMatrix rows_of(const Buffer& b) {
  const auto floats = b.as<float>();
  return {floats.data(), static_cast<int64_t>(floats.size()) / kColumns, kColumns, kColumns};
}

// Products of 2 (2B)^2 C operations each that the algorithm's formulas ask for, and all memory of the context.
void report(benchmark::State& state, const Context& context, int64_t products) {
  const auto keys = static_cast<double>(state.range(0));
  const double flops = 2 * static_cast<double>(products) * keys * keys * static_cast<double>(kColumns);
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["MB"] = static_cast<double>(context.allocated_bytes()) * 1e-6;
}

void run_einsum(benchmark::State& state, bool with_backward) {
  const InfoNceProblem problem = make_problem(state.range(0), 0.1);
  Context context(2);
  context.reserve(infonce_scratch(problem));
  const Buffer e = context.allocate_elements<float>(problem.keys() * kColumns);
  const Buffer grad_anchors = context.allocate_elements<float>(problem.keys() * kColumns);
  const Buffer grad_keys = context.allocate_elements<float>(problem.keys() * kColumns);
  const Buffer memory = context.allocate(infonce_saved_bytes(problem));
  const InfoNceSaved saved = infonce_saved(problem, memory.as<std::byte>());
  std::vector<double> shard_loss(kShards);
  fill_unit_rows(rows_of(e));
  for (auto _ : state) {
    infonce_forward(context.exec(), rows_of(e), problem, saved, shard_loss);
    if (with_backward)
      infonce_backward(context.exec(), rows_of(e), problem, saved, rows_of(grad_anchors), rows_of(grad_keys));
    benchmark::ClobberMemory();
  }
  report(state, context, with_backward ? 3 : 1);
}

void run_streaming(benchmark::State& state, bool with_backward, double temperature) {
  const InfoNceProblem problem = make_problem(state.range(0), temperature);
  Context context(2);
  context.reserve(streaming_scratch(problem));
  const Buffer e = context.allocate_elements<float>(problem.keys() * kColumns);
  const Buffer grad_e = context.allocate_elements<float>(problem.keys() * kColumns);
  const Buffer memory = context.allocate(streaming_saved_bytes(problem));
  const StreamingSaved saved = streaming_saved(problem, memory.as<std::byte>());
  // One rank owns all rows: what it would gather is what it has.
  const std::span<const double> log_denominators(saved.log_denominators, static_cast<size_t>(problem.keys()));
  std::vector<double> shard_loss(kShards);
  fill_unit_rows(rows_of(e));
  for (auto _ : state) {
    streaming_forward(context.exec(), rows_of(e), problem, saved, shard_loss);
    if (with_backward)
      streaming_backward(context.exec(), rows_of(e), problem, saved, log_denominators, rows_of(grad_e));
    benchmark::ClobberMemory();
  }
  report(state, context, with_backward ? 3 : 1);
}

void einsum_forward(benchmark::State& state) {
  run_einsum(state, false);
}
void einsum_forward_backward(benchmark::State& state) {
  run_einsum(state, true);
}
void streaming_forward_only(benchmark::State& state) {
  run_streaming(state, false, 0.1);
}
void streaming_forward_backward(benchmark::State& state) {
  run_streaming(state, true, 0.1);
}
// Too low a temperature for a fixed shift: a maximum for each row, no tile serves two.
void streaming_row_maximum(benchmark::State& state) {
  run_streaming(state, true, 0.02);
}

#define SIMCLR_BENCHMARK(name) \
  BENCHMARK(name)->Arg(512)->Arg(1024)->Arg(4096)->Arg(16384)->UseRealTime()->Unit(benchmark::kMillisecond)
SIMCLR_BENCHMARK(einsum_forward);
SIMCLR_BENCHMARK(streaming_forward_only);
SIMCLR_BENCHMARK(einsum_forward_backward);
SIMCLR_BENCHMARK(streaming_forward_backward);
SIMCLR_BENCHMARK(streaming_row_maximum);

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
