#include <algorithm>
#include <cmath>

#include "kernels/common/parallel.h"
#include "kernels/pool/pool_device.h"

namespace simclr::pool {
namespace {

// y[l] = mean over rows of x[row][l]; x is one map of one channel block.
SIMCLR_MULTIVERSION void mean_map(const float* x, int64_t rows, int64_t block, float* y) {
  float sum[kMaxChannelBlock] = {};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t l = 0; l < block; ++l) sum[l] += x[r * block + l];
  for (int64_t l = 0; l < block; ++l) y[l] = sum[l] / static_cast<float>(rows);
}

}  // namespace

void average_forward(const CpuExec& exec, ConstActivation x, Matrix y) {
  const int64_t block = channel_block(), rows = x.height * x.width;
  parallel_for(exec, x.shards * x.samples, [&](int64_t i, int) {
    for (int64_t c = 0; c < x.padded_channels(); c += block)
      mean_map(x.sample(i) + c * rows, rows, block, y.row(i) + c);
  });
}

void average_backward(const CpuExec& exec, ConstMatrix grad_y, Activation grad_x) {
  const int64_t block = channel_block(), rows = grad_x.height * grad_x.width;
  const float share = 1.0F / static_cast<float>(rows);
  parallel_for(exec, grad_x.shards * grad_x.samples, [&](int64_t i, int) {
    for (int64_t c = 0; c < grad_x.padded_channels(); c += block) {
      float* map = grad_x.sample(i) + c * rows;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < block; ++l)
          map[r * block + l] = c + l < grad_x.channels ? grad_y.row(i)[c + l] * share : 0.0F;
    }
  });
}

void max_forward(const CpuExec& exec, ConstActivation x, Activation y, uint8_t* winners) {
  const int64_t block = channel_block();
  parallel_for(exec, x.shards * x.samples, [&](int64_t i, int) {
    uint8_t* win = winners + i * y.sample_elements();
    float* out = y.sample(i);
    for (int64_t b = 0; b < x.padded_channels() / block; ++b) {
      const float* map = x.sample(i) + b * x.height * x.width * block;
      for (int64_t p = 0; p < y.height; ++p) {
        for (int64_t q = 0; q < y.width; ++q, out += block, win += block) {
          std::fill_n(out, block, -INFINITY);
          // The first place of the window that lies inside: it wins when all are -infinity.
          std::fill_n(win, block, static_cast<uint8_t>((p == 0 ? 3 : 0) + (q == 0 ? 1 : 0)));
          for (int64_t u = 0; u < 3; ++u) {
            const int64_t iy = 2 * p + u - 1;
            if (iy < 0 || iy >= x.height) continue;
            for (int64_t v = 0; v < 3; ++v) {
              const int64_t ix = 2 * q + v - 1;
              if (ix < 0 || ix >= x.width) continue;
              const float* in = map + (iy * x.width + ix) * block;
              for (int64_t l = 0; l < block; ++l) {
                if (in[l] > out[l] || std::isnan(in[l])) out[l] = in[l], win[l] = static_cast<uint8_t>(u * 3 + v);
              }
            }
          }
        }
      }
    }
  });
}

void max_backward(const CpuExec& exec, ConstActivation grad_y, const uint8_t* winners, Activation grad_x) {
  const int64_t block = channel_block();
  parallel_for(exec, grad_x.shards * grad_x.samples, [&](int64_t i, int) {
    std::fill_n(grad_x.sample(i), grad_x.sample_elements(), 0.0F);
    const uint8_t* win = winners + i * grad_y.sample_elements();
    const float* g = grad_y.sample(i);
    for (int64_t b = 0; b < grad_x.padded_channels() / block; ++b) {
      float* map = grad_x.sample(i) + b * grad_x.height * grad_x.width * block;
      for (int64_t p = 0; p < grad_y.height; ++p) {
        for (int64_t q = 0; q < grad_y.width; ++q, g += block, win += block) {
          for (int64_t l = 0; l < block; ++l) {
            const int64_t iy = 2 * p + win[l] / 3 - 1, ix = 2 * q + win[l] % 3 - 1;
            map[(iy * grad_x.width + ix) * block + l] += g[l];
          }
        }
      }
    }
  });
}

}  // namespace simclr::pool
