// Time of the InfoNCE ops on the GPU, einsum next to streaming, forward and backward, of all anchors of the global
// batch: one rank that owns every shard, C = 128. A time is that of one call among twenty that are queued together, so
// it has no launch in it unless launching takes longer than computing. Not the loss of several ranks: nothing is
// gathered. FLOP/s counts what the sums are, 6 (2B)^2 C, for both: three products on tensor cores for one are the
// method's affair.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/infonce/infonce.h"
#include "kernels/infonce_streaming/infonce_streaming.h"
#include "src/device/choose_device.h"
#include "src/device/context.h"

namespace simclr {
namespace {

constexpr int64_t kColumns = 128;
constexpr int kCalls = 20;

std::vector<float> unit_rows(int64_t rows) {
  PhiloxStream random(PhiloxKey{1, 2}, 0, 0, 0);
  std::vector<float> values(rows * kColumns);  // [rows, C]
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

FloatMatrix matrix(const Buffer& buffer) {
  const auto floats = buffer.as<float>();
  return {floats.data(), static_cast<int64_t>(floats.size()) / kColumns, kColumns, kColumns};
}

Buffer upload_embeddings(Context& context, int64_t keys) {
  Buffer e = context.allocate_elements<float>(keys * kColumns);
  const std::vector<float> rows = unit_rows(keys);
  context.device().upload(e.as<float>().data(), rows.data(), rows.size() * sizeof(float));
  return e;
}

// Arguments: images of the global batch B, shards S.
InfoNceProblem problem_of(const benchmark::State& state, double temperature) {
  const int64_t batch = state.range(0), shards = state.range(1);
  return {.batch = batch,
          .shard_images = batch / shards,
          .shards = shards,
          .first_shard = 0,
          .columns = kColumns,
          .temperature = temperature,
          .margin = 0.0};
}

template <typename Call>
void time_calls(benchmark::State& state, const Context& context, int64_t keys, Call&& call) {
  for (auto _ : state) {
    for (int i = 0; i < kCalls; ++i) call();
    context.device().synchronize();
  }
  using benchmark::Counter;
  const double flops = 6.0 * static_cast<double>(keys) * static_cast<double>(keys) * kColumns * kCalls;
  state.counters["call_s"] = Counter(kCalls, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["FLOP/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
}

void infonce_on_gpu(benchmark::State& state) {
  const InfoNceProblem problem = problem_of(state, 0.1);
  const int64_t keys = problem.keys();
  Context context(make_cuda_device({}));
  context.reserve(infonce_scratch(problem));
  const Buffer e = upload_embeddings(context, keys);
  const Buffer grad_anchors = context.allocate_elements<float>(keys * kColumns);
  const Buffer grad_keys = context.allocate_elements<float>(keys * kColumns);
  const Buffer memory = context.allocate(infonce_saved_bytes(problem));
  const Buffer shard_loss = context.allocate_elements<double>(problem.shards);
  const InfoNceSaved saved = infonce_saved(problem, memory.as<std::byte>());
  time_calls(state, context, keys, [&] {
    infonce_forward(context.exec(), matrix(e), problem, saved, shard_loss.as<double>());
    infonce_backward(context.exec(), matrix(e), problem, saved, matrix(grad_anchors), matrix(grad_keys));
  });
}

void run_streaming(benchmark::State& state, double temperature, DataType products) {
  InfoNceProblem problem = problem_of(state, temperature);
  problem.products = products;
  const int64_t keys = problem.keys();
  Context context(make_cuda_device({}));
  context.reserve(streaming_scratch(problem, true));
  const Buffer e = upload_embeddings(context, keys);
  const Buffer grad_e = context.allocate_elements<float>(keys * kColumns);
  const Buffer memory = context.allocate(streaming_saved_bytes(problem));
  const Buffer shard_loss = context.allocate_elements<double>(problem.shards);
  const StreamingSaved saved = streaming_saved(problem, memory.as<std::byte>());
  const std::span<const double> log_denominators(saved.log_denominators, static_cast<size_t>(keys));
  time_calls(state, context, keys, [&] {
    streaming_forward(context.exec(), matrix(e), problem, saved, shard_loss.as<double>());
    streaming_backward(context.exec(), matrix(e), problem, saved, log_denominators, matrix(grad_e));
  });
}

void streaming_on_gpu(benchmark::State& state) {
  run_streaming(state, 0.1, DataType::kFloat32);
}
void streaming_bf16_on_gpu(benchmark::State& state) {
  run_streaming(state, 0.1, DataType::kBfloat16);
}
// A temperature at which each row has a maximum of its own.
void streaming_row_maximum_on_gpu(benchmark::State& state) {
  run_streaming(state, 0.02, DataType::kFloat32);
}

void set_up(benchmark::internal::Benchmark* b, const std::vector<int64_t>& batches,
            const std::vector<int64_t>& shards) {
  b->ArgNames({"B", "S"})->ArgsProduct({batches, shards})->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(infonce_on_gpu)->Apply([](auto* b) { set_up(b, {512, 4096, 8192}, {1, 8}); });
BENCHMARK(streaming_on_gpu)->Apply([](auto* b) { set_up(b, {512, 4096, 8192}, {1, 8}); });
// Where einsum's logits, 4 and 17 GB, are too many.
BENCHMARK(streaming_on_gpu)->Apply([](auto* b) { set_up(b, {16384, 32768}, {8}); });
BENCHMARK(streaming_bf16_on_gpu)->Apply([](auto* b) { set_up(b, {4096, 8192}, {8}); });
BENCHMARK(streaming_row_maximum_on_gpu)->Apply([](auto* b) { set_up(b, {4096}, {8}); });

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
