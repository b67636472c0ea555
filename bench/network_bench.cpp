// Forward and backward of the encoder alone (no views, loss, optimizer): images/s, to be held against the same network
// elsewhere. Arguments: depth, width, images a step, threads, ConvolutionAlgorithm (0 auto, 1 direct). FLOPs: 3 x
// forward; the ceiling is the machine's FMA rate, for a direct convolution. CPU: of all threads; other work on the
// machine moves it least, with OMP_WAIT_POLICY=passive.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "src/comm/single_process_collectives.h"
#include "src/nn/resnet.h"

namespace simclr {
namespace {

void encoder_step(benchmark::State& state) {
  const int depth = static_cast<int>(state.range(0));
  const int64_t width = state.range(1), images = state.range(2);
  Context context(static_cast<int>(state.range(3)));
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
  const Buffer pictures = context.allocate_elements<float>(x.elements());
  x.data = pictures.as<float>().data();
  for (int64_t i = 0; i < x.elements(); ++i) x.data[i] = static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F;
  const int64_t stride = padded_cols(net.out_features());
  const Buffer grad = context.allocate_elements<float>(images * stride);
  const Matrix grad_h{grad.as<float>().data(), images, net.out_features(), stride};
  for (int64_t i = 0; i < grad_h.elements(); ++i) grad_h.data[i] = static_cast<float>(i % 7 - 3) * 1e-3F;

  const auto step = [&] {
    net.forward(Mode::kTrain, x);
    net.backward(grad_h, nobody_waits);
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
}  // namespace simclr

BENCHMARK_MAIN();
