// What the tests of batch_norm share: one layer, forward and backward, on a global batch that is split over ranks.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/batch_norm/batch_norm_ref.h"
#include "kernels/common/ordered_tree.h"
#include "tests/kernels/kernel_support.h"

namespace simclr::test {

struct BatchNormCase {
  Shape shape;  // of the global batch
  int groups = 1;
  bool relu = false, residual = false;
  double eps = 1e-5, momentum = 0.1;

  int64_t group_count() const { return shape.rows() / groups * shape.height * shape.width; }
  BatchNormStatistics statistics(float* mean, float* inv_std, double* var) const {
    return {shape.channels, groups, group_count(), mean, inv_std, var};
  }
  batch_norm_ref::Shape ref_shape() const {
    return {shape.shards, shape.samples, shape.channels, shape.height, shape.width, groups};
  }
};

struct BatchNormInputs {
  std::vector<float> x, residual, grad_y;  // plain NCHW; residual is empty when there is none
  std::vector<float> gamma, beta;          // [C]
};

inline BatchNormInputs random_batch_norm_inputs(const BatchNormCase& c) {
  const int64_t size = c.shape.elements();
  return {.x = random_values(size, 1, -1.0F, 2.0F),
          .residual = c.residual ? random_values(size, 2) : std::vector<float>(),
          .grad_y = random_values(size, 3),
          .gamma = random_values(c.shape.channels, 4, 0.5F, 1.5F),
          .beta = random_values(c.shape.channels, 5)};
}

// Inputs with y = (x - mean)*gamma*inv_std + beta within a few roundings of zero, for statistics of one group: ReLU
// passes about every second one, and which depends on the last bit.
struct AboutZero {
  BatchNormCase c{.shape = {2, 3, 21, 4, 5}, .relu = true};
  BatchNormInputs in = random_batch_norm_inputs(c);
  std::vector<float> mean, inv_std;  // [Cp]
};
inline AboutZero about_zero() {
  AboutZero z;
  const auto padded = static_cast<size_t>(padded_cols(z.c.shape.channels));
  z.mean = random_values(static_cast<int64_t>(padded), 6),
  z.inv_std = random_values(static_cast<int64_t>(padded), 7, 0.5F, 2.0F);
  const auto places = static_cast<size_t>(z.c.shape.height * z.c.shape.width);
  for (size_t i = 0; i < z.in.x.size(); ++i) {
    const size_t c = i / places % static_cast<size_t>(z.c.shape.channels);
    float x = z.mean[c] - z.in.beta[c] / (z.in.gamma[c] * z.inv_std[c]);
    for (size_t step = 0; step < i % 7; ++step) x = std::nextafter(x, i % 2 ? 10.0F : -10.0F);
    z.in.x[i] = x;
  }
  return z;
}

struct BatchNormResults {
  std::vector<float> y, grad_x, grad_residual;   // plain; grad_residual is empty without a residual
  std::vector<float> grad_gamma, grad_beta;      // [C]
  std::vector<float> mean, inv_std;              // [groups, Cp]
  std::vector<double> var, sums, grad_sums;      // [groups, Cp], [groups, 2, Cp] of all ranks
  std::vector<float> running_mean, running_var;  // [C], from 0 and 1
};

// Each rank's sums, combined over ranks as the collectives do: by the ordered tree.
template <typename SumsOfRank>
std::vector<double> sum_over_ranks(int ranks, int64_t elements, SumsOfRank&& sums_of_rank) {
  std::vector<std::vector<double>> parts;
  for (int r = 0; r < ranks; ++r) {
    parts.emplace_back(static_cast<size_t>(elements), std::numeric_limits<double>::quiet_NaN());
    sums_of_rank(r, parts.back().data());
  }
  ordered_tree_sum<double>([&](int64_t r) { return parts[r].data(); }, ranks, 0, elements);
  return parts[0];
}

// The global batch on `ranks` ranks, one after another, outputs and scratch full of NaN. With a residual the masked
// gradient is written over grad_y, as the network does; without, ReLU is applied on the fly in both backward passes.
// Maps: FeatureMaps, or those of bfloat16_support.h.
template <typename Maps = FeatureMaps>
BatchNormResults run_batch_norm(const BatchNormCase& c, int ranks, int threads, const BatchNormInputs& in) {
  const int64_t own = c.shape.shards / ranks, channels = c.shape.channels;
  const PoisonedContext context(threads, batch_norm_scratch(own, channels, c.groups));
  const Exec& exec = context.exec();
  const Maps x(c.shape, in.x), residual(c.shape, c.residual ? in.residual : in.x), grad_y(c.shape, in.grad_y);
  Maps y(c.shape), grad_x(c.shape);
  const auto of = [&](int r, const Maps& m) { return shards_of(m.view(), r * own, own); };

  const auto padded = static_cast<size_t>(c.groups * padded_cols(channels)), width = static_cast<size_t>(channels);
  const int64_t sum_elements = batch_norm_sum_elements(channels, c.groups);
  BatchNormResults out;
  out.mean.assign(padded, kNaN), out.inv_std.assign(padded, kNaN), out.var.assign(padded, kNaN);
  const BatchNormStatistics statistics = c.statistics(out.mean.data(), out.inv_std.data(), out.var.data());

  out.sums = sum_over_ranks(ranks, sum_elements,
                            [&](int r, double* sums) { batch_norm_sums(exec, of(r, x), c.groups, sums); });
  batch_norm_statistics(exec, out.sums.data(), c.eps, statistics);
  for (int r = 0; r < ranks; ++r) {
    batch_norm_apply(exec, of(r, x),
                     {.statistics = statistics,
                      .relu = c.relu,
                      .gamma = in.gamma.data(),
                      .beta = in.beta.data(),
                      .residual = c.residual ? of(r, residual).data : nullptr},
                     of(r, y));
  }

  // With a residual from the stored y, else from x: as the network does.
  const auto how = [&](int r, bool masked) {
    return BatchNormBackward{.statistics = statistics,
                             .gamma = in.gamma.data(),
                             .relu_y = c.relu && c.residual && !masked ? of(r, y).data : nullptr,
                             .beta = c.relu && !c.residual ? in.beta.data() : nullptr};
  };
  out.grad_sums = sum_over_ranks(ranks, sum_elements, [&](int r, double* sums) {
    batch_norm_backward_sums(exec, of(r, grad_y), of(r, x), how(r, false), c.residual ? of(r, grad_y).data : nullptr,
                             sums);
  });
  out.grad_gamma.assign(width, kNaN), out.grad_beta.assign(width, kNaN);
  batch_norm_parameter_gradients(exec, out.grad_sums.data(), statistics, out.grad_gamma.data(), out.grad_beta.data());
  for (int r = 0; r < ranks; ++r) {
    batch_norm_backward_apply(exec, of(r, grad_y), of(r, x), how(r, c.residual), out.grad_sums.data(), of(r, grad_x));
  }

  out.running_mean.assign(width, 0.0F), out.running_var.assign(width, 1.0F);
  const int skip = 0;
  batch_norm_update_running(exec, statistics, c.momentum, &skip, out.running_mean.data(), out.running_var.data());
  EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero() && grad_y.padding_is_zero());
  out.y = y.plain(), out.grad_x = grad_x.plain();
  if (c.residual) out.grad_residual = grad_y.plain();
  return out;
}

}  // namespace simclr::test
