// The convolutions of a CIFAR ResNet, one line per shape and direction; flops is the figure (multiply and add count
// two, padding counts as work). One thread unless OMP_NUM_THREADS says more. by_algorithm: direct against Winograd
// with the weights transformed by each shard and once for all, of one shard (as each of eight ranks has it) and of
// eight; what kernels/conv2d/winograd_table.cpp was written from; take the least of several rounds:
//   conv2d_bench --benchmark_filter=by_algorithm --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include "kernels/conv2d/conv2d.h"

#include <benchmark/benchmark.h>
#include <omp.h>

#include <initializer_list>
#include <vector>

#include "src/device/context.h"

namespace simclr {
namespace {

enum Direction { kForward, kBackwardData, kBackwardWeights };
enum Algorithm { kAuto, kDirect, kWinograd, kWinogradShared };
constexpr const char* kChoices[] = {"", "direct; direct; direct", "winograd; winograd; winograd",
                                    "winograd_shared; winograd_shared; winograd"};

// Arguments: shards, samples, channels in and out, size of the map, kernel, stride, Algorithm.
template <Direction direction>
void BM_Conv2d(benchmark::State& state) {
  Context context(omp_get_max_threads());
  const Conv2dParams p{.shards = state.range(0),
                       .samples = state.range(1),
                       .in_channels = state.range(2),
                       .out_channels = state.range(3),
                       .height = state.range(4),
                       .width = state.range(4),
                       .kernel = state.range(5),
                       .stride = state.range(6),
                       .padding = state.range(5) / 2,
                       .input_is_images = state.range(2) == 3};
  const auto plan = make_conv2d_plan(context.exec(), p, kChoices[state.range(7)]);
  context.reserve(plan->scratch());
  Activation x{nullptr, p.shards, p.samples, p.in_channels, p.height, p.width};
  Activation y{nullptr, p.shards, p.samples, p.out_channels, p.out_height(), p.out_width()};
  const Buffer x_memory = context.allocate_elements<float>(x.elements());
  const Buffer y_memory = context.allocate_elements<float>(y.elements());
  x.data = x_memory.as<float>().data(), y.data = y_memory.as<float>().data();
  const ConstImages images{x.data, p.shards, p.samples, p.in_channels, p.height, p.width};
  for (size_t i = 0; float& v : x_memory.as<float>()) v = static_cast<float>(i++ % 17) - 8.0F;
  std::vector<float> weight(p.weight_elements(), 0.01F);
  state.SetLabel(plan->describe());
  for (auto _ : state) {
    if constexpr (direction == kForward) {
      p.input_is_images ? conv2d_forward(context.exec(), *plan, images, weight.data(), y)
                        : conv2d_forward(context.exec(), *plan, x, weight.data(), y);
    } else if constexpr (direction == kBackwardData) {
      conv2d_backward_data(context.exec(), *plan, y, weight.data(), x);
    } else {
      p.input_is_images ? conv2d_backward_weights(context.exec(), *plan, images, y, weight.data())
                        : conv2d_backward_weights(context.exec(), *plan, x, y, weight.data());
    }
    benchmark::ClobberMemory();
  }
  state.counters["flops"] = benchmark::Counter(p.forward_flops(), benchmark::Counter::kIsIterationInvariantRate);
}

void feature_maps(benchmark::internal::Benchmark* b) {
  b->Args({2, 32, 32, 32, 32, 3, 1, 0})
      ->Args({2, 32, 32, 64, 32, 3, 2, 0})
      ->Args({2, 32, 32, 64, 32, 1, 2, 0})
      ->Args({2, 32, 64, 64, 16, 3, 1, 0})
      ->Args({2, 32, 128, 128, 8, 3, 1, 0})
      ->Args({2, 32, 256, 256, 4, 3, 1, 0})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}
// The first layer sees images, which have no gradient.
void images_too(benchmark::internal::Benchmark* b) {
  b->Args({2, 32, 3, 32, 32, 3, 1, 0});
  feature_maps(b);
}
// Processor time, since other work on the machine must not decide.
void by_algorithm_of(benchmark::internal::Benchmark* b, std::initializer_list<Algorithm> algorithms) {
  b->Unit(benchmark::kMillisecond)->MinTime(0.05);
  for (const auto& [channels, size] :
       {std::pair<int64_t, int64_t>{64, 32}, {128, 16}, {256, 8}, {512, 4}, {32, 32}, {128, 8}, {256, 4}})
    for (const int64_t samples : {8, 16, 32, 64})
      for (const int64_t shards : {1, 8})
        for (const Algorithm algorithm : algorithms)
          b->Args({shards, samples, channels, channels, size, 3, 1, algorithm});
}
void by_algorithm(benchmark::internal::Benchmark* b) {
  by_algorithm_of(b, {kDirect, kWinograd, kWinogradShared});
}
void by_algorithm_weights(benchmark::internal::Benchmark* b) {
  by_algorithm_of(b, {kDirect, kWinograd});
}
BENCHMARK(BM_Conv2d<kForward>)->Apply(images_too);
BENCHMARK(BM_Conv2d<kBackwardData>)->Apply(feature_maps);
BENCHMARK(BM_Conv2d<kBackwardWeights>)->Apply(images_too);
BENCHMARK(BM_Conv2d<kForward>)->Name("by_algorithm/forward")->Apply(by_algorithm);
BENCHMARK(BM_Conv2d<kBackwardData>)->Name("by_algorithm/backward_data")->Apply(by_algorithm);
BENCHMARK(BM_Conv2d<kBackwardWeights>)->Name("by_algorithm/backward_weights")->Apply(by_algorithm_weights);

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
