// Forward and backward of the encoder alone (no views, loss, optimizer): images/s, to be held against the same network
// elsewhere. Arguments: depth, width, images a step, threads, ConvolutionAlgorithm (0 auto, 1 direct); --precision fp32
// or bf16, which is always direct. FLOPs: 3 x forward; the ceiling is the machine's FMA rate, for a direct convolution.
// CPU: of all threads; other work on the machine moves it least, with OMP_WAIT_POLICY=passive.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "kernels/common/bfloat16.h"
#include "src/comm/single_process_collectives.h"
#include "src/nn/resnet.h"

namespace simclr {
namespace {

Precision precision = Precision::kFp32;

void encoder_step(benchmark::State& state) {
  const int depth = static_cast<int>(state.range(0));
  const int64_t width = state.range(1), images = state.range(2);
  Context context(static_cast<int>(state.range(3)), precision);
  SingleProcessCollectives collectives;
  ParameterStore store;
  ActivationArena arena;
  const LayerContext lc{
      context,
      collectives,
      store,
      arena,
      ShardGeometry{.shards = 8, .local_shards = 8, .first_shard = 0, .images_per_shard = images / 16},
      BatchNormSettings{},
      PlanChoices{.algorithm = static_cast<ConvolutionAlgorithm>(state.range(4)), .before = {}}};
  ResNet net(lc, {.depth = depth, .width = width}, 32);
  store.allocate(context);
  arena.allocate(context);
  net.initialize(1);

  Images x{nullptr, 8, images / 8, 3, 32, 32};
  const Buffer pixels = context.allocate_elements<float>(x.elements());
  x.data = pixels.as<float>().data();
  for (int64_t i = 0; i < x.elements(); ++i)
    x.data.as<float>()[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  const int64_t stride = padded_cols(net.out_features());
  const Buffer grad = context.allocate_storage(images * stride);
  const Matrix grad_h{{grad.data(), context.device().storage()}, images, net.out_features(), stride};
  with_element_type(grad_h.type(), [&]<typename T>(T) {
    for (int64_t i = 0; i < grad_h.elements(); ++i)
      grad_h.data.as<T>()[i] = element_of<T>(static_cast<float>(i % 7 - 3) * 1e-3F);
  });

  const auto step = [&] {
    net.forward(Mode::kTrain, x);
    net.backward(grad_h, ignore_ready);
  };
  step();  // touches the memory for the first time
  for (auto _ : state) step();
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(images), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] =
      benchmark::Counter(3e-9 * net.forward_flops(), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(encoder_step)
    ->ArgNames({"depth", "width", "images", "threads", "algorithm"})
    ->ArgsProduct({{10}, {32}, {256}, {2}, {0, 1}})
    ->ArgsProduct({{18}, {64}, {64, 256}, {2}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->MinTime(5);

}  // namespace

// Takes "--precision NAME" out of the arguments; false for a name that is none.
bool take_precision(int& count, char** arguments) {
  for (int i = 1; i + 1 < count; ++i) {
    if (std::string(arguments[i]) != "--precision") continue;
    const std::string name = arguments[i + 1];
    if (name == "bf16") precision = Precision::kBf16;
    std::copy(arguments + i + 2, arguments + count, arguments + i);
    count -= 2;
    return name == "bf16" || name == "fp32";
  }
  return true;
}

}  // namespace simclr

int main(int argc, char** argv) {
  if (!simclr::take_precision(argc, argv)) {
    std::fputs("--precision: expected fp32 or bf16\n", stderr);
    return 2;
  }
  if (const std::string reason = simclr::why_no_bfloat16();
      simclr::precision == simclr::Precision::kBf16 && !reason.empty()) {
    std::fprintf(stderr, "--precision bf16: %s\n", reason.c_str());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
