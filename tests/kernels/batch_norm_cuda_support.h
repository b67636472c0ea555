// What the tests of batch_norm on CUDA share: one layer, forward and backward, on a global batch that is split over
// ranks; what batch_norm_support.h does on the CPU.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/kernels/batch_norm_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr::test {

// As the device sees them.
inline BatchNormInputs stored_inputs(DataType type, const BatchNormInputs& in) {
  BatchNormInputs stored = in;
  for (auto* maps : {&stored.x, &stored.residual, &stored.grad_y}) *maps = as_stored(type, *maps);
  return stored;
}

// The global batch on `ranks` ranks, one after another, outputs and scratch full of NaN.
inline BatchNormResults run_batch_norm_on_cuda(DataType type, const BatchNormCase& c, int ranks,
                                               const BatchNormInputs& in) {
  const int64_t own = c.shape.shards / ranks, channels = c.shape.channels;
  const CudaRun run(precision_of(type), batch_norm_scratch(own, channels, c.groups));
  const Exec& exec = run.exec();
  const CudaFeatureMaps x(type, c.shape, in.x), residual(type, c.shape, c.residual ? in.residual : in.x);
  const CudaFeatureMaps grad_y(type, c.shape, in.grad_y), y(type, c.shape), grad_x(type, c.shape);
  const auto of = [&](int r, const CudaFeatureMaps& m) { return shards_of(m.view(), r * own, own); };
  const DeviceArray<float> gamma(in.gamma), beta(in.beta);

  const auto padded = static_cast<size_t>(c.groups * padded_cols(channels)), width = static_cast<size_t>(channels);
  const DeviceArray<float> mean(padded), inv_std(padded);
  const DeviceArray<double> var(padded);
  const BatchNormStatistics statistics = c.statistics(mean.data(), inv_std.data(), var.data());
  const int64_t sum_elements = batch_norm_sum_elements(channels, c.groups);
  const auto over_ranks = [&](auto&& sums_of_rank) {
    return sum_over_ranks(ranks, sum_elements, [&](int r, double* sums) {
      const DeviceArray<double> of_rank(static_cast<size_t>(sum_elements));
      sums_of_rank(r, of_rank.data());
      std::ranges::copy(of_rank.download(), sums);
    });
  };

  BatchNormResults out;
  out.sums = over_ranks([&](int r, double* sums) { batch_norm_sums(exec, of(r, x), c.groups, sums); });
  const DeviceArray<double> sums(out.sums);
  batch_norm_statistics(exec, sums.data(), c.eps, statistics);
  for (int r = 0; r < ranks; ++r) {
    batch_norm_apply(exec, of(r, x),
                     {.statistics = statistics,
                      .relu = c.relu,
                      .gamma = gamma.data(),
                      .beta = beta.data(),
                      .residual = c.residual ? of(r, residual).data : nullptr},
                     of(r, y));
  }

  // With a residual from the stored y, else from x: as the network does.
  const auto how = [&](int r, bool masked) {
    return BatchNormBackward{.statistics = statistics,
                             .gamma = gamma.data(),
                             .relu_y = c.relu && c.residual && !masked ? of(r, y).data : nullptr,
                             .beta = c.relu && !c.residual ? beta.data() : nullptr};
  };
  out.grad_sums = over_ranks([&](int r, double* part) {
    batch_norm_backward_sums(exec, of(r, grad_y), of(r, x), how(r, false), c.residual ? of(r, grad_y).data : nullptr,
                             part);
  });
  const DeviceArray<double> grad_sums(out.grad_sums);
  const DeviceArray<float> grad_gamma(width), grad_beta(width);
  batch_norm_parameter_gradients(exec, grad_sums.data(), statistics, grad_gamma.data(), grad_beta.data());
  for (int r = 0; r < ranks; ++r) {
    batch_norm_backward_apply(exec, of(r, grad_y), of(r, x), how(r, c.residual), grad_sums.data(), of(r, grad_x));
  }

  const DeviceArray<float> running_mean(std::vector<float>(width, 0.0F)), running_var(std::vector<float>(width, 1.0F));
  const DeviceArray<int> skip(std::vector<int>{0});
  batch_norm_update_running(exec, statistics, c.momentum, skip.data(), running_mean.data(), running_var.data());
  EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero() && grad_y.padding_is_zero());
  out.mean = mean.download(), out.inv_std = inv_std.download(), out.var = var.download();
  out.y = y.plain(), out.grad_x = grad_x.plain();
  out.grad_gamma = grad_gamma.download(), out.grad_beta = grad_beta.download();
  out.running_mean = running_mean.download(), out.running_var = running_var.download();
  if (c.residual) out.grad_residual = grad_y.plain();
  return out;
}

}  // namespace simclr::test
