// Batch norm with fused ReLU over the maps of a CIFAR ResNet: forward (sums, apply) and backward (sums, apply) of one
// layer; bytes_per_second counts each array once per pass over it. One thread unless OMP_NUM_THREADS says more.
#include "kernels/batch_norm/batch_norm.h"

#include <benchmark/benchmark.h>
#include <omp.h>

#include <vector>

#include "src/device/context.h"

namespace simclr {
namespace {

// A layer with its statistics made; arguments: shards, samples, channels, size of the map, groups.
struct Layer {
  explicit Layer(const benchmark::State& state)
      : context(omp_get_max_threads()), groups(static_cast<int>(state.range(4))), x{nullptr,        state.range(0),
                                                                                    state.range(1), state.range(2),
                                                                                    state.range(3), state.range(3)} {
    context.reserve(batch_norm_scratch(x.shards, x.channels, groups));
    y = grad = grad_x = x;
    x.data = take(), y.data = take(), grad.data = take(), grad_x.data = take();
    for (int64_t i = 0; i < x.elements(); ++i) x.data.as<float>()[i] = static_cast<float>(i * 7 % 31) - 15.0F;
    for (int64_t i = 0; i < x.elements(); ++i) grad.data.as<float>()[i] = static_cast<float>(i * 11 % 13) - 6.0F;
    const auto padded = static_cast<size_t>(groups * x.padded_channels());
    mean.resize(padded), inv_std.resize(padded), var.resize(padded), sums.resize(2 * padded);
    gamma.assign(x.channels, 1.0F), beta.assign(x.channels, 0.5F);
    forward();
  }
  void forward() {
    batch_norm_sums(context.exec(), x, groups, sums.data());
    batch_norm_statistics(context.exec(), sums.data(), 1e-5, statistics());
    batch_norm_apply(context.exec(), x,
                     {.statistics = statistics(), .relu = true, .gamma = gamma.data(), .beta = beta.data()}, y);
  }
  void backward() {
    const BatchNormBackward how{.statistics = statistics(), .gamma = gamma.data(), .beta = beta.data()};
    batch_norm_backward_sums(context.exec(), grad, x, how, nullptr, sums.data());
    batch_norm_backward_apply(context.exec(), grad, x, how, sums.data(), grad_x);
  }
  int64_t count() const { return x.shards * x.samples / groups * x.height * x.width; }
  BatchNormStatistics statistics() { return {x.channels, groups, count(), mean.data(), inv_std.data(), var.data()}; }
  float* take() {
    buffers.push_back(context.allocate_elements<float>(x.elements()));
    return buffers.back().as<float>().data();
  }

  Context context;
  std::vector<Buffer> buffers;
  int groups;
  Activation x, y, grad, grad_x;
  std::vector<float> mean, inv_std, gamma, beta;
  std::vector<double> var, sums;
};

void BM_BatchNormForward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) layer.forward();
  state.SetBytesProcessed(state.iterations() * layer.x.elements() * 3 * 4);  // x twice, y
}

void BM_BatchNormBackward(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) layer.backward();
  state.SetBytesProcessed(state.iterations() * layer.x.elements() * 7 * 4);  // grad, y, x twice, grad_x
}

void shapes(benchmark::internal::Benchmark* b) {
  for (const int groups : {1, 2})
    b->Args({2, 32, 32, 32, groups})->Args({2, 32, 64, 16, groups})->Args({2, 32, 256, 4, groups});
  b->Args({2, 32, 512, 1, 1})->Unit(benchmark::kMicrosecond)->UseRealTime();
}
BENCHMARK(BM_BatchNormForward)->Apply(shapes);
BENCHMARK(BM_BatchNormBackward)->Apply(shapes);

}  // namespace
}  // namespace simclr

BENCHMARK_MAIN();
