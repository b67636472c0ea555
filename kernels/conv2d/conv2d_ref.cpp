#include "kernels/conv2d/conv2d_ref.h"

namespace simclr::conv2d_ref {
namespace {

// Calls f(x index, weight index, y index) for every multiply-add of the convolution.
template <typename F>
void for_each_term(const Conv2dParams& p, F&& f) {
  const int64_t oh = p.out_height(), ow = p.out_width(), k = p.kernel;
  for (int64_t i = 0; i < p.shards * p.samples; ++i)
    for (int64_t o = 0; o < p.out_channels; ++o)
      for (int64_t py = 0; py < oh; ++py)
        for (int64_t px = 0; px < ow; ++px)
          for (int64_t c = 0; c < p.in_channels; ++c)
            for (int64_t u = 0; u < k; ++u)
              for (int64_t v = 0; v < k; ++v) {
                const int64_t iy = py * p.stride + u - p.padding, ix = px * p.stride + v - p.padding;
                if (iy < 0 || iy >= p.height || ix < 0 || ix >= p.width) continue;
                f(((i * p.in_channels + c) * p.height + iy) * p.width + ix, ((o * p.in_channels + c) * k + u) * k + v,
                  ((i * p.out_channels + o) * oh + py) * ow + px);
              }
}

}  // namespace

std::vector<double> forward(const Conv2dParams& p, const std::vector<double>& x, const std::vector<double>& weight) {
  std::vector<double> y(p.shards * p.samples * p.out_channels * p.out_height() * p.out_width());
  for_each_term(p, [&](int64_t xi, int64_t wi, int64_t yi) { y[yi] += x[xi] * weight[wi]; });
  return y;
}

std::vector<double> backward_data(const Conv2dParams& p, const std::vector<double>& grad_y,
                                  const std::vector<double>& weight) {
  std::vector<double> grad_x(p.shards * p.samples * p.in_channels * p.height * p.width);
  for_each_term(p, [&](int64_t xi, int64_t wi, int64_t yi) { grad_x[xi] += grad_y[yi] * weight[wi]; });
  return grad_x;
}

std::vector<double> backward_weights(const Conv2dParams& p, const std::vector<double>& x,
                                     const std::vector<double>& grad_y) {
  std::vector<double> grad_weight(p.weight_elements());
  for_each_term(p, [&](int64_t xi, int64_t wi, int64_t yi) { grad_weight[wi] += x[xi] * grad_y[yi]; });
  return grad_weight;
}

}  // namespace simclr::conv2d_ref
