// batch_norm on the CPU: what is done once per channel, and the tasks over shards, samples and channel blocks; the loops
// over a channel block are in batch_norm_blocks_cpu.cpp.
#include <algorithm>
#include <cmath>

#include "kernels/batch_norm/batch_norm_blocks.h"
#include "kernels/batch_norm/batch_norm_device.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"

namespace simclr::batch_norm {
namespace {

// Address of element i, or none where there is no array.
template <typename T>
T* at_or_none(T* p, int64_t i) {
  return p ? p + i : nullptr;
}

template <typename T>
BlockGradients<T> gradients_of(const ConstActivation& grad_y, const ConstActivation& x, const BatchNormBackward& how) {
  return {grad_y.data.as<T>(), how.relu_y.as<T>(), x.data.as<T>(), how.has_relu()};
}
// Those of the block whose first element is number i.
template <typename T>
BlockGradients<T> at(const BlockGradients<T>& all, int64_t i) {
  return {all.grad_y + i, at_or_none(all.relu_y, i), all.x + i, all.relu};
}

void check_type(const ConstActivation& x) {
  SIMCLR_CHECK(x.type() == DataType::kFloat32 || channel_block() == 16, "bfloat16 in blocks of {} channels",
               channel_block());
}

// f(first element of the block, maps, group, channel offset, part) for every (shard, group, channel block); part is the
// [2, Cp] slice of that shard and group. Then shards are summed in tree order into sums [groups, 2, Cp].
template <typename F>
void sum_over_shards(const CpuExec& exec, const ConstActivation& x, int groups, double* sums, F&& f) {
  const int64_t block = channel_block(), padded = x.padded_channels(), blocks = padded / block;
  const int64_t group_samples = x.samples / groups, part_elements = groups * 2 * padded;
  const BlockMaps maps{group_samples, x.height * x.width, x.sample_elements()};
  double* parts = workspace_as<double>(exec, x.shards * part_elements);  // [shards, groups, 2, Cp]
  parallel_for(exec, x.shards * groups * blocks, [&](int64_t task, int) {
    const int64_t b = task % blocks, g = task / blocks % groups, s = task / blocks / groups;
    const int64_t first = (s * x.samples + g * group_samples) * maps.stride + b * maps.rows * block;
    f(first, maps, g, b * block, parts + s * part_elements + g * 2 * padded);
  });
  ordered_tree_sum<double>([&](int64_t s) { return parts + s * part_elements; }, x.shards, 0, part_elements);
  std::copy_n(parts, part_elements, sums);
}

// scale [groups, Cp] = gamma*inv_std and beta [Cp], zero for padding channels, into (groups + 1)*Cp floats at `to`. No
// beta: zeros.
class Coefficients {
 public:
  Coefficients(const BatchNormStatistics& s, const float* gamma, const float* given_beta, float* to)
      : mean_(s.mean), scale_(to), padded_(padded_cols(s.channels)) {
    beta_ = to + s.groups * padded_;
    for (int64_t c = 0; c < padded_; ++c) {
      beta_[c] = given_beta && c < s.channels ? given_beta[c] : 0.0F;
      for (int g = 0; g < s.groups; ++g)
        scale_[g * padded_ + c] = c < s.channels ? gamma[c] * s.inv_std[g * padded_ + c] : 0.0F;
    }
  }
  BlockAffine at(int64_t group, int64_t channel) const {
    const int64_t k = group * padded_ + channel;
    return {mean_ + k, scale_ + k, beta_ + channel};
  }

 private:
  const float* mean_;
  float *scale_, *beta_;
  int64_t padded_;
};

// f(sample, group, element offset of the sample and block, channel offset) for every sample and channel block.
template <typename F>
void for_each_map(const CpuExec& exec, const ConstActivation& x, int groups, F&& f) {
  const int64_t block = channel_block(), map = x.height * x.width * block;
  parallel_for(exec, x.shards * x.samples, [&](int64_t i, int) {
    const int64_t g = i % x.samples / (x.samples / groups);
    for (int64_t b = 0; b < x.padded_channels() / block; ++b) f(i * x.sample_elements() + b * map, g, b * block);
  });
}

}  // namespace

void sums(const CpuExec& exec, ConstActivation x, int groups, double* sums) {
  check_type(x);
  const int64_t block = channel_block(), padded = x.padded_channels();
  with_element_type(x.type(), [&]<typename T>(T) {
    const T* from = x.data.as<T>();
    sum_over_shards(exec, x, groups, sums, [&](int64_t first, BlockMaps maps, int64_t, int64_t c, double* part) {
      sum_block(block, from + first, maps, part + c, part + padded + c);
    });
  });
}

void statistics(const CpuExec&, const double* sums, double eps, const BatchNormStatistics& s) {
  const double m = as_double(s.count);
  const int64_t padded = padded_cols(s.channels);
  for (int g = 0; g < s.groups; ++g) {
    for (int64_t c = 0; c < padded; ++c) {
      const double mean = sums[(g * 2) * padded + c] / m;
      double var = sums[(g * 2 + 1) * padded + c] / m - mean * mean;
      if (var < 0) var = 0;  // rounding of a constant channel; NaN stays NaN
      s.mean[g * padded + c] = to_float(mean);
      s.var[g * padded + c] = var;
      // An overflow in the sums must not become a quiet 1/inf = 0: it is passed on as NaN, which ends the run.
      s.inv_std[g * padded + c] = std::isfinite(var) ? to_float(1.0 / std::sqrt(var + eps)) : NAN;
    }
  }
}

void apply(const CpuExec& exec, ConstActivation x, const BatchNormApply& how, Elements y) {
  check_type(x);
  const int groups = how.statistics.groups;
  const int64_t block = channel_block(), rows = x.height * x.width;
  const Coefficients coefficients(how.statistics, how.gamma, how.beta,
                                  workspace_as<float>(exec, (groups + 1) * x.padded_channels()));
  with_element_type(x.type(), [&]<typename T>(T) {
    const T *from = x.data.as<T>(), *residual = how.residual.as<T>();
    T* to = y.as<T>();
    for_each_map(exec, x, groups, [&](int64_t at, int64_t g, int64_t c) {
      apply_map(block, from + at, at_or_none(residual, at), coefficients.at(g, c), how.relu, rows, to + at);
    });
  });
}

void backward_sums(const CpuExec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                   Elements masked, double* sums) {
  check_type(x);
  const int groups = how.statistics.groups;
  const int64_t block = channel_block(), padded = x.padded_channels();
  // Past the parts of sum_over_shards.
  const int64_t parts = x.shards * groups * 2 * padded;
  double* after = workspace_as<double>(exec, parts + (groups + 1) * padded) + parts;
  const Coefficients coefficients(how.statistics, how.gamma, how.beta, reinterpret_cast<float*>(after));
  with_element_type(x.type(), [&]<typename T>(T) {
    const auto gradients = gradients_of<T>(grad_y, x, how);
    T* passed = masked.as<T>();
    sum_over_shards(exec, x, groups, sums, [&](int64_t first, BlockMaps maps, int64_t g, int64_t c, double* part) {
      sum_gradient_block(block, at(gradients, first), coefficients.at(g, c), maps, at_or_none(passed, first), part + c,
                         part + padded + c);
    });
  });
}

void parameter_gradients(const CpuExec&, const double* sums, const BatchNormStatistics& s, float* grad_gamma,
                         float* grad_beta) {
  const int64_t padded = padded_cols(s.channels);
  for (int64_t c = 0; c < s.channels; ++c) {
    double gamma = 0, beta = 0;
    for (int g = 0; g < s.groups; ++g) {
      beta += sums[(g * 2) * padded + c];
      gamma += sums[(g * 2 + 1) * padded + c] * s.inv_std[g * padded + c];
    }
    grad_gamma[c] = to_float(gamma);
    grad_beta[c] = to_float(beta);
  }
}

void backward_apply(const CpuExec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                    const double* sums, Elements grad_x) {
  check_type(x);
  const BatchNormStatistics& s = how.statistics;
  const int64_t block = channel_block(), padded = x.padded_channels(), rows = x.height * x.width;
  float* slope = workspace_as<float>(exec, (s.groups * 4 + 1) * padded);  // [groups, Cp] each
  float* c1 = slope + s.groups * padded;
  float* c0 = c1 + s.groups * padded;
  const Coefficients coefficients(s, how.gamma, how.beta, c0 + s.groups * padded);
  const double count = as_double(s.count);
  for (int g = 0; g < s.groups; ++g) {
    for (int64_t c = 0; c < padded; ++c) {
      const int64_t k = g * padded + c;
      const double a = c < x.channels ? double{how.gamma[c]} * s.inv_std[k] : 0.0;
      const double grad_gamma = sums[(g * 2 + 1) * padded + c] * s.inv_std[k], grad_beta = sums[g * 2 * padded + c];
      slope[k] = to_float(a);
      c1[k] = to_float(-a * s.inv_std[k] * grad_gamma / count);
      c0[k] = to_float(-a * grad_beta / count);
    }
  }
  with_element_type(x.type(), [&]<typename T>(T) {
    const auto gradients = gradients_of<T>(grad_y, x, how);
    T* to = grad_x.as<T>();
    for_each_map(exec, x, s.groups, [&](int64_t first, int64_t g, int64_t c) {
      const int64_t k = g * padded + c;
      backward_map(block, at(gradients, first), coefficients.at(g, c), {slope + k, c1 + k, c0 + k}, rows, to + first);
    });
  });
}

void update_running(const CpuExec&, const BatchNormStatistics& s, double momentum, const int* skip, float* running_mean,
                    float* running_var) {
  if (*skip != 0) return;
  const int64_t padded = padded_cols(s.channels);
  const double unbiased = s.count > 1 ? as_double(s.count) / as_double(s.count - 1) : 1.0;
  for (int g = 0; g < s.groups; ++g) {
    for (int64_t c = 0; c < s.channels; ++c) {
      running_mean[c] = to_float((1 - momentum) * running_mean[c] + momentum * s.mean[g * padded + c]);
      running_var[c] = to_float((1 - momentum) * running_var[c] + momentum * s.var[g * padded + c] * unbiased);
    }
  }
}

void use_running(const CpuExec&, const float* running_mean, const float* running_var, double eps,
                 const BatchNormStatistics& s) {
  for (int64_t c = 0; c < padded_cols(s.channels); ++c) {
    const double var = c < s.channels ? running_var[c] : 0.0;
    s.mean[c] = c < s.channels ? running_mean[c] : 0.0F;
    s.var[c] = var;
    s.inv_std[c] = to_float(1.0 / std::sqrt(var + eps));
  }
}

}  // namespace simclr::batch_norm
