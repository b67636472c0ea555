// batch_norm on the CPU. The loops over one channel block are compiled per instruction set; floats are added within
// one feature map (a few hundred terms), doubles across maps. T is what feature maps are stored as: float, or bfloat16
// on processors whose blocks have 16 channels.
#include <algorithm>
#include <cmath>

#include "kernels/batch_norm/batch_norm_device.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "kernels/common/simd.h"

namespace simclr::batch_norm {
namespace {

// A run of feature maps of one channel block: `samples` maps of `rows` places, `stride` elements apart.
struct Maps {
  int64_t samples, rows, stride;
};

// Sum of f(row, accumulators) over a map with four independent accumulators, combined as (0+1)+(2+3).
template <int L, typename F>
SIMCLR_INLINE void sum_map(int64_t rows, F&& f, double* first, double* second) {
  using V = Lanes<L>;
  typename V::Float a0{}, a1{}, a2{}, a3{}, b0{}, b1{}, b2{}, b3{};
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    f(r * L, a0, b0);
    f((r + 1) * L, a1, b1);
    f((r + 2) * L, a2, b2);
    f((r + 3) * L, a3, b3);
  }
  for (; r < rows; ++r) f(r * L, a0, b0);
  float a[L], b[L];
  V::store(a, (a0 + a1) + (a2 + a3));
  V::store(b, (b0 + b1) + (b2 + b3));
  for (int l = 0; l < L; ++l) first[l] += a[l], second[l] += b[l];
}

// sum x and sum x^2 of each lane, taken about the lane's first value.
template <int L, typename T>
SIMCLR_INLINE void forward_block(const T* x, Maps maps, double* sum, double* square) {
  using V = Lanes<L>;
  const auto shift = V::load(x);
  double s[L] = {}, q[L] = {};
  for (int64_t i = 0; i < maps.samples; ++i) {
    const T* p = x + i * maps.stride;
    sum_map<L>(
        maps.rows,
        [&](int64_t k, auto& a, auto& b) __attribute__((always_inline)) {
          const auto d = V::load(p + k) - shift;
          a += d;
          b += d * d;
        },
        s, q);
  }
  const auto count = static_cast<double>(maps.samples * maps.rows);
  for (int l = 0; l < L; ++l) {
    const double k = as_float(x[l]);
    sum[l] = s[l] + count * k;
    square[l] = q[l] + 2 * k * s[l] + count * k * k;
  }
}

// The coefficients of one channel block: y = (x - mean)*scale + beta.
struct Affine {
  const float *mean, *scale, *beta;
};
template <int L>
SIMCLR_INLINE auto affine(typename Lanes<L>::Float centered, typename Lanes<L>::Float scale,
                          typename Lanes<L>::Float beta) {
  return centered * scale + beta;
}

// sum g and sum g*(x - mean) of each lane; g = grad_y where relu_y > 0, or where y, computed anew, is (relu without
// relu_y); g is written to masked when that is given.
template <int L, typename T>
SIMCLR_INLINE void backward_block(const T* grad_y, const T* relu_y, const T* x, Affine of, bool relu, Maps maps,
                                  T* masked, double* sum, double* product) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), scale = V::load(of.scale), beta = V::load(of.beta);
  const bool anew = relu && !relu_y;
  double s[L] = {}, q[L] = {};
  for (int64_t i = 0; i < maps.samples; ++i) {
    const int64_t at = i * maps.stride;
    sum_map<L>(
        maps.rows,
        [&](int64_t k, auto& a, auto& b) __attribute__((always_inline)) {
          auto g = V::load(grad_y + at + k);
          const auto centered = V::load(x + at + k) - m;
          if (relu_y) g = V::where_positive(V::load(relu_y + at + k), g);
          if (anew) g = V::where_positive(affine<L>(centered, scale, beta), g);
          if (masked) V::store(masked + at + k, g);
          a += g;
          b += g * centered;
        },
        s, q);
  }
  for (int l = 0; l < L; ++l) sum[l] = s[l], product[l] = q[l];
}

template <int L, typename T>
SIMCLR_INLINE void apply_map(const T* x, const T* residual, Affine of, bool relu, int64_t rows, T* y) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), a = V::load(of.scale), b = V::load(of.beta);
  for (int64_t k = 0; k < rows * L; k += L) {
    auto v = affine<L>(V::load(x + k) - m, a, b);
    if (residual) v += V::load(residual + k);
    if (relu) v = V::relu(v);
    V::store(y + k, v);
  }
}

// grad_x = slope*g + c1*(x - mean) + c0, g as above
template <int L, typename T>
SIMCLR_INLINE void backward_map(const T* grad_y, const T* relu_y, const T* x, Affine of, bool relu, const float* slope,
                                const float* c1, const float* c0, int64_t rows, T* grad_x) {
  using V = Lanes<L>;
  const auto m = V::load(of.mean), scale = V::load(of.scale), beta = V::load(of.beta);
  const auto a = V::load(slope), k1 = V::load(c1), k0 = V::load(c0);
  const bool anew = relu && !relu_y;
  for (int64_t k = 0; k < rows * L; k += L) {
    auto g = V::load(grad_y + k);
    const auto centered = V::load(x + k) - m;
    if (relu_y) g = V::where_positive(V::load(relu_y + k), g);
    if (anew) g = V::where_positive(affine<L>(centered, scale, beta), g);
    V::store(grad_x + k, a * g + (centered * k1 + k0));
  }
}

// The same functions, compiled per instruction set; bfloat16 for blocks of 16.
SIMCLR_MULTIVERSION void forward_any(int block, const float* x, Maps maps, double* sum, double* square) {
  block == 16 ? forward_block<16>(x, maps, sum, square) : forward_block<8>(x, maps, sum, square);
}
SIMCLR_MULTIVERSION void backward_any(int block, const float* grad_y, const float* relu_y, const float* x, Affine of,
                                      bool relu, Maps maps, float* masked, double* sum, double* product) {
  block == 16 ? backward_block<16>(grad_y, relu_y, x, of, relu, maps, masked, sum, product)
              : backward_block<8>(grad_y, relu_y, x, of, relu, maps, masked, sum, product);
}
SIMCLR_MULTIVERSION void apply_any(int block, const float* x, const float* residual, Affine of, bool relu, int64_t rows,
                                   float* y) {
  block == 16 ? apply_map<16>(x, residual, of, relu, rows, y) : apply_map<8>(x, residual, of, relu, rows, y);
}
SIMCLR_MULTIVERSION void backward_apply_any(int block, const float* grad_y, const float* relu_y, const float* x,
                                            Affine of, bool relu, const float* slope, const float* c1, const float* c0,
                                            int64_t rows, float* grad_x) {
  block == 16 ? backward_map<16>(grad_y, relu_y, x, of, relu, slope, c1, c0, rows, grad_x)
              : backward_map<8>(grad_y, relu_y, x, of, relu, slope, c1, c0, rows, grad_x);
}
SIMCLR_MULTIVERSION void forward_any(int, const Bfloat16* x, Maps maps, double* sum, double* square) {
  forward_block<16>(x, maps, sum, square);
}
SIMCLR_MULTIVERSION void backward_any(int, const Bfloat16* grad_y, const Bfloat16* relu_y, const Bfloat16* x, Affine of,
                                      bool relu, Maps maps, Bfloat16* masked, double* sum, double* product) {
  backward_block<16>(grad_y, relu_y, x, of, relu, maps, masked, sum, product);
}
SIMCLR_MULTIVERSION void apply_any(int, const Bfloat16* x, const Bfloat16* residual, Affine of, bool relu, int64_t rows,
                                   Bfloat16* y) {
  apply_map<16>(x, residual, of, relu, rows, y);
}
SIMCLR_MULTIVERSION void backward_apply_any(int, const Bfloat16* grad_y, const Bfloat16* relu_y, const Bfloat16* x,
                                            Affine of, bool relu, const float* slope, const float* c1, const float* c0,
                                            int64_t rows, Bfloat16* grad_x) {
  backward_map<16>(grad_y, relu_y, x, of, relu, slope, c1, c0, rows, grad_x);
}

// Address of element i, or none where there is no array.
template <typename T>
T* at_or_none(T* p, int64_t i) {
  return p ? p + i : nullptr;
}

void check_type(const ConstActivation& x) {
  SIMCLR_CHECK(x.type() == DataType::kFloat32 || channel_block() == 16, "bfloat16 in blocks of {} channels",
               channel_block());
}

// f(first element of the block, maps, channel offset, part) for every (shard, group, channel block); part is the
// [2, Cp] slice of that shard and group. Then shards are summed in tree order into sums [groups, 2, Cp].
template <typename F>
void sum_over_shards(const CpuExec& exec, const ConstActivation& x, int groups, double* sums, F&& f) {
  const int64_t block = channel_block(), padded = x.padded_channels(), blocks = padded / block;
  const int64_t group_samples = x.samples / groups, part_elements = groups * 2 * padded;
  const Maps maps{group_samples, x.height * x.width, x.sample_elements()};
  double* parts = workspace_as<double>(exec, x.shards * part_elements);  // [shards, groups, 2, Cp]
  parallel_for(exec, x.shards * groups * blocks, [&](int64_t task, int) {
    const int64_t b = task % blocks, g = task / blocks % groups, s = task / blocks / groups;
    const int64_t first = (s * x.samples + g * group_samples) * maps.stride + b * maps.rows * block;
    f(first, maps, b * block, static_cast<int>(g), parts + s * part_elements + g * 2 * padded);
  });
  ordered_tree_sum<double>([&](int64_t s) { return parts + s * part_elements; }, x.shards, 0, part_elements);
  std::copy_n(parts, part_elements, sums);
}

// scale [groups, Cp] = gamma*inv_std and beta [Cp], zero for padding channels, into (groups + 1)*Cp floats at `to`. No
// beta: zeros.
class Coefficients {
 public:
  Coefficients(const ConstActivation& x, const BatchNormStatistics& s, int groups, const float* gamma,
               const float* given_beta, float* to)
      : mean_(s.mean), scale_(to), beta_(to + groups * x.padded_channels()), padded_(x.padded_channels()) {
    for (int64_t c = 0; c < padded_; ++c) {
      beta_[c] = given_beta && c < x.channels ? given_beta[c] : 0.0F;
      for (int g = 0; g < groups; ++g)
        scale_[g * padded_ + c] = c < x.channels ? gamma[c] * s.inv_std[g * padded_ + c] : 0.0F;
    }
  }
  Affine at(int64_t group, int64_t channel) const {
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
  const auto block = static_cast<int>(channel_block());
  const int64_t padded = x.padded_channels();
  with_element_type(x.type(), [&]<typename T>(T) {
    const T* from = x.data.as<T>();
    sum_over_shards(exec, x, groups, sums, [&](int64_t first, Maps maps, int64_t c, int, double* part) {
      forward_any(block, from + first, maps, part + c, part + padded + c);
    });
  });
}

void statistics(const CpuExec&, const double* sums, int64_t padded, int groups, int64_t count, double eps,
                BatchNormStatistics s) {
  const auto m = static_cast<double>(count);
  for (int g = 0; g < groups; ++g) {
    for (int64_t c = 0; c < padded; ++c) {
      const double mean = sums[(g * 2) * padded + c] / m;
      double var = sums[(g * 2 + 1) * padded + c] / m - mean * mean;
      if (var < 0) var = 0;  // rounding of a constant channel; NaN stays NaN
      s.mean[g * padded + c] = static_cast<float>(mean);
      s.var[g * padded + c] = var;
      // An overflow in the sums must not become a quiet 1/inf = 0: it is passed on as NaN, which ends the run.
      s.inv_std[g * padded + c] = std::isfinite(var) ? static_cast<float>(1.0 / std::sqrt(var + eps)) : NAN;
    }
  }
}

void apply(const CpuExec& exec, ConstActivation x, BatchNormStatistics s, const BatchNormApply& how, Elements y) {
  check_type(x);
  const int64_t padded = x.padded_channels(), rows = x.height * x.width;
  const auto block = static_cast<int>(channel_block());
  const Coefficients coefficients(x, s, how.groups, how.gamma, how.beta,
                                  workspace_as<float>(exec, (how.groups + 1) * padded));
  with_element_type(x.type(), [&]<typename T>(T) {
    const T *from = x.data.as<T>(), *residual = how.residual.as<T>();
    T* to = y.as<T>();
    for_each_map(exec, x, how.groups, [&](int64_t at, int64_t g, int64_t c) {
      apply_any(block, from + at, at_or_none(residual, at), coefficients.at(g, c), how.relu, rows, to + at);
    });
  });
}

void backward_sums(const CpuExec& exec, ConstActivation grad_y, ConstActivation x, BatchNormStatistics s,
                   const BatchNormBackward& how, Elements masked, double* sums) {
  check_type(x);
  const auto block = static_cast<int>(channel_block());
  const int64_t padded = x.padded_channels();
  // Behind the parts of sum_over_shards.
  const int64_t parts = x.shards * how.groups * 2 * padded;
  double* after = workspace_as<double>(exec, parts + (how.groups + 1) * padded) + parts;
  const Coefficients coefficients(x, s, how.groups, how.gamma, how.beta, reinterpret_cast<float*>(after));
  with_element_type(x.type(), [&]<typename T>(T) {
    const T *gradients = grad_y.data.as<T>(), *relu_y = how.relu_y.as<T>(), *inputs = x.data.as<T>();
    T* passed = masked.as<T>();
    sum_over_shards(exec, x, how.groups, sums, [&](int64_t first, Maps maps, int64_t c, int g, double* part) {
      backward_any(block, gradients + first, at_or_none(relu_y, first), inputs + first, coefficients.at(g, c),
                   how.has_relu(), maps, at_or_none(passed, first), part + c, part + padded + c);
    });
  });
}

void parameter_gradients(const CpuExec&, const double* sums, int64_t channels, int groups, BatchNormStatistics s,
                         float* grad_gamma, float* grad_beta) {
  const int64_t padded = round_up(channels, channel_block());
  for (int64_t c = 0; c < channels; ++c) {
    double gamma = 0, beta = 0;
    for (int g = 0; g < groups; ++g) {
      beta += sums[(g * 2) * padded + c];
      gamma += sums[(g * 2 + 1) * padded + c] * s.inv_std[g * padded + c];
    }
    grad_gamma[c] = static_cast<float>(gamma);
    grad_beta[c] = static_cast<float>(beta);
  }
}

void backward_apply(const CpuExec& exec, ConstActivation grad_y, ConstActivation x, BatchNormStatistics s,
                    const BatchNormBackward& how, const double* sums, int64_t count, Elements grad_x) {
  check_type(x);
  const int64_t padded = x.padded_channels(), rows = x.height * x.width;
  const auto block = static_cast<int>(channel_block());
  float* slope = workspace_as<float>(exec, (how.groups * 4 + 1) * padded);  // [groups, Cp] each
  float* c1 = slope + how.groups * padded;
  float* c0 = c1 + how.groups * padded;
  const Coefficients coefficients(x, s, how.groups, how.gamma, how.beta, c0 + how.groups * padded);
  for (int g = 0; g < how.groups; ++g) {
    for (int64_t c = 0; c < padded; ++c) {
      const int64_t k = g * padded + c;
      const double a = c < x.channels ? static_cast<double>(how.gamma[c]) * s.inv_std[k] : 0.0;
      const double grad_gamma = sums[(g * 2 + 1) * padded + c] * s.inv_std[k], grad_beta = sums[g * 2 * padded + c];
      slope[k] = static_cast<float>(a);
      c1[k] = static_cast<float>(-a * s.inv_std[k] * grad_gamma / static_cast<double>(count));
      c0[k] = static_cast<float>(-a * grad_beta / static_cast<double>(count));
    }
  }
  with_element_type(x.type(), [&]<typename T>(T) {
    const T *gradients = grad_y.data.as<T>(), *relu_y = how.relu_y.as<T>(), *inputs = x.data.as<T>();
    T* to = grad_x.as<T>();
    for_each_map(exec, x, how.groups, [&](int64_t at, int64_t g, int64_t c) {
      const int64_t k = g * padded + c;
      backward_apply_any(block, gradients + at, at_or_none(relu_y, at), inputs + at, coefficients.at(g, c),
                         how.has_relu(), slope + k, c1 + k, c0 + k, rows, to + at);
    });
  });
}

void update_running(const CpuExec&, BatchNormStatistics s, int64_t channels, int groups, int64_t count, double momentum,
                    const int* skip, float* running_mean, float* running_var) {
  if (*skip != 0) return;
  const int64_t padded = round_up(channels, channel_block());
  const double unbiased = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1.0;
  for (int g = 0; g < groups; ++g) {
    for (int64_t c = 0; c < channels; ++c) {
      running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * s.mean[g * padded + c]);
      running_var[c] =
          static_cast<float>((1 - momentum) * running_var[c] + momentum * s.var[g * padded + c] * unbiased);
    }
  }
}

void use_running(const CpuExec&, const float* running_mean, const float* running_var, int64_t channels, double eps,
                 BatchNormStatistics s) {
  for (int64_t c = 0; c < round_up(channels, channel_block()); ++c) {
    const double var = c < channels ? running_var[c] : 0.0;
    s.mean[c] = c < channels ? running_mean[c] : 0.0F;
    s.var[c] = var;
    s.inv_std[c] = static_cast<float>(1.0 / std::sqrt(var + eps));
  }
}

}  // namespace simclr::batch_norm
