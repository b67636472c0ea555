// pool on the CPU, one task per sample: feature maps of one channel block after another, so that the inner loops run over
// the channels of a block.
#include <algorithm>
#include <cmath>

#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"
#include "kernels/pool/pool_device.h"

namespace simclr::pool {
namespace {

// y[l] = mean over rows of x[row][l]; x is one map of one channel block.
template <typename T>
[[gnu::always_inline]] inline void mean_of(const T* x, int64_t rows, int64_t block, T* y) {
  float sum[kMaxChannelBlock] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t l = 0; l < block; ++l) sum[l] += as_float(x[r * block + l]);
  for (int64_t l = 0; l < block; ++l) y[l] = element_of<T>(sum[l] / to_float(rows));
}
SIMCLR_MULTIVERSION void mean_map(const float* x, int64_t rows, int64_t block, float* y) {
  mean_of(x, rows, block, y);
}
SIMCLR_MULTIVERSION void mean_map(const Bfloat16* x, int64_t rows, int64_t block, Bfloat16* y) {
  mean_of(x, rows, block, y);
}

// Sample i; win points to its winners.
template <typename T>
void max_forward_sample(const ActivationView<const T*>& x, const ActivationView<T*>& y, int64_t i, uint8_t* win) {
  const int64_t block = channel_block();
  const T* from = x.sample(i);
  T* out = y.sample(i);
  for (int64_t b = 0; b < x.padded_channels() / block; ++b) {
    const T* map = from + b * x.height * x.width * block;
    for (int64_t p = 0; p < y.height; ++p) {
      for (int64_t q = 0; q < y.width; ++q, out += block, win += block) {
        float most[kMaxChannelBlock];
        std::fill_n(most, block, -INFINITY);
        // The first place of the window that lies inside: it wins when all are -infinity.
        std::fill_n(win, block, place_in_window(p == 0, q == 0));
        for (int u = 0; u < 3; ++u) {
          const int64_t iy = 2 * p + u - 1;
          if (iy < 0 || iy >= x.height) continue;
          for (int v = 0; v < 3; ++v) {
            const int64_t ix = 2 * q + v - 1;
            if (ix < 0 || ix >= x.width) continue;
            const T* in = map + (iy * x.width + ix) * block;
            for (int64_t l = 0; l < block; ++l) {
              const float value = as_float(in[l]);
              if (value > most[l] || std::isnan(value)) most[l] = value, win[l] = place_in_window(u, v);
            }
          }
        }
        for (int64_t l = 0; l < block; ++l) out[l] = element_of<T>(most[l]);
      }
    }
  }
}

// Each place of x reads the windows that contain it, so that its sum is rounded once: place iy = 2p + u - 1 is in
// the windows p = iy/2 and (iy+1)/2.
template <typename T>
void max_backward_sample(const ActivationView<const T*>& grad_y, const uint8_t* win, const ActivationView<T*>& grad_x,
                         int64_t i) {
  const int64_t block = channel_block(), windows = grad_y.height * grad_y.width * block;
  const T* g = grad_y.sample(i);
  T* out = grad_x.sample(i);
  for (int64_t b = 0; b < grad_x.padded_channels() / block; ++b, g += windows, win += windows) {
    for (int64_t iy = 0; iy < grad_x.height; ++iy) {
      for (int64_t ix = 0; ix < grad_x.width; ++ix, out += block) {
        float sum[kMaxChannelBlock] = {};
        for (int64_t p = iy / 2; p <= (iy + 1) / 2 && p < grad_y.height; ++p) {
          for (int64_t q = ix / 2; q <= (ix + 1) / 2 && q < grad_y.width; ++q) {
            const int64_t here = (iy - 2 * p + 1) * 3 + ix - 2 * q + 1, at = (p * grad_y.width + q) * block;
            for (int64_t l = 0; l < block; ++l) sum[l] += win[at + l] == here ? as_float(g[at + l]) : 0.0F;
          }
        }
        for (int64_t l = 0; l < block; ++l) out[l] = element_of<T>(sum[l]);
      }
    }
  }
}

}  // namespace

void average_forward(const CpuExec& exec, ConstActivation x, Matrix y) {
  const int64_t block = channel_block(), rows = x.height * x.width;
  with_element_type(x.type(), [&]<typename T>(T) {
    const auto maps = x.as<T>();
    const auto means = y.as<T>();
    parallel_for(exec, x.shards * x.samples, [&](int64_t i, int) {
      for (int64_t c = 0; c < x.padded_channels(); c += block)
        mean_map(maps.sample(i) + c * rows, rows, block, means.row(i) + c);
    });
  });
}

void average_backward(const CpuExec& exec, ConstMatrix grad_y, Activation grad_x) {
  const int64_t block = channel_block(), rows = grad_x.height * grad_x.width;
  const float share = 1.0F / to_float(rows);
  with_element_type(grad_x.type(), [&]<typename T>(T) {
    const auto grad_means = grad_y.as<T>();
    const auto grad_maps = grad_x.as<T>();
    parallel_for(exec, grad_x.shards * grad_x.samples, [&](int64_t i, int) {
      const T* g = grad_means.row(i);
      for (int64_t c = 0; c < grad_x.padded_channels(); c += block) {
        T values[kMaxChannelBlock];
        for (int64_t l = 0; l < block; ++l)
          values[l] = element_of<T>(c + l < grad_x.channels ? as_float(g[c + l]) * share : 0.0F);
        T* map = grad_maps.sample(i) + c * rows;
        for (int64_t r = 0; r < rows; ++r) std::copy_n(values, block, map + r * block);
      }
    });
  });
}

void max_forward(const CpuExec& exec, ConstActivation x, Activation y, uint8_t* winners) {
  with_element_type(x.type(), [&]<typename T>(T) {
    const auto from = x.as<T>();
    const auto to = y.as<T>();
    parallel_for(exec, x.shards * x.samples,
                 [&](int64_t i, int) { max_forward_sample(from, to, i, winners + i * to.sample_elements()); });
  });
}

void max_backward(const CpuExec& exec, ConstActivation grad_y, const uint8_t* winners, Activation grad_x) {
  with_element_type(grad_x.type(), [&]<typename T>(T) {
    const auto from = grad_y.as<T>();
    const auto to = grad_x.as<T>();
    parallel_for(exec, grad_x.shards * grad_x.samples,
                 [&](int64_t i, int) { max_backward_sample(from, winners + i * from.sample_elements(), to, i); });
  });
}

}  // namespace simclr::pool
