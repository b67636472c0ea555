// The layers of the reference network as plain loops over NCHW arrays, in double or dual numbers (T).
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/nn/dual.h"

namespace simclr::test {

template <typename T>
struct Maps {
  int64_t rows = 0, channels = 0, height = 0, width = 0;
  std::vector<T> data;  // [rows, channels, height, width]

  Maps(int64_t n, int64_t c, int64_t h, int64_t w, T value = T(0.0))
      : rows(n), channels(c), height(h), width(w), data(static_cast<size_t>(n * c * h * w), value) {}
  int64_t places() const { return height * width; }
  T* map(int64_t i, int64_t c) { return data.data() + (i * channels + c) * places(); }
  const T* map(int64_t i, int64_t c) const { return data.data() + (i * channels + c) * places(); }
};

struct ConvHow {
  int64_t out = 0, kernel = 3, stride = 1, padding = 1;
};

// y[i,o,p,q] = sum over c, u, v of w[o,c,u,v] x[i, c, p*stride+u-padding, q*stride+v-padding]
template <typename T>
Maps<T> conv(const Maps<T>& x, const std::vector<T>& w, const ConvHow& how) {
  const int64_t k = how.kernel, s = how.stride;
  Maps<T> y(x.rows, how.out, (x.height + 2 * how.padding - k) / s + 1, (x.width + 2 * how.padding - k) / s + 1);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t o = 0; o < how.out; ++o) {
      for (int64_t c = 0; c < x.channels; ++c) {
        for (int64_t tap = 0; tap < k * k; ++tap) {
          const int64_t u = tap / k - how.padding, v = tap % k - how.padding;
          const T weight = w[(o * x.channels + c) * k * k + tap];
          for (int64_t p = 0; p < y.height; ++p) {
            if (p * s + u < 0 || p * s + u >= x.height) continue;
            const T* in = x.map(i, c) + (p * s + u) * x.width;
            T* row = y.map(i, o) + p * y.width;
            for (int64_t q = 0; q < y.width; ++q)
              if (q * s + v >= 0 && q * s + v < x.width) add_product(weight, in[q * s + v], row[q]);
          }
        }
      }
    }
  }
  return y;
}

// 3x3, stride 2, padding 1.
template <typename T>
Maps<T> max_pool(const Maps<T>& x) {
  Maps<T> y(x.rows, x.channels, (x.height - 1) / 2 + 1, (x.width - 1) / 2 + 1,
            T(-std::numeric_limits<double>::infinity()));
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t c = 0; c < x.channels; ++c) {
      for (int64_t at = 0; at < x.places(); ++at) {  // each place goes to the windows (centers 2a, 2b) that hold it
        const int64_t p = at / x.width, q = at % x.width;
        for (int64_t a = p / 2; a <= (p + 1) / 2 && a < y.height; ++a) {
          for (int64_t b = q / 2; b <= (q + 1) / 2 && b < y.width; ++b) {
            T& best = y.map(i, c)[a * y.width + b];
            if (value_of(x.map(i, c)[at]) > value_of(best)) best = x.map(i, c)[at];
          }
        }
      }
    }
  }
  return y;
}

template <typename T>
Maps<T> mean_over_places(const Maps<T>& x) {
  Maps<T> y(x.rows, x.channels, 1, 1);
  const T share(1.0 / static_cast<double>(x.places()));
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t c = 0; c < x.channels; ++c)
      for (int64_t p = 0; p < x.places(); ++p) *y.map(i, c) += share * x.map(i, c)[p];
  return y;
}

template <typename T>
void relu(Maps<T>& x) {
  for (T& v : x.data)
    if (!(value_of(v) > 0)) v = T(0.0);
}

template <typename T>
void add(const Maps<T>& x, Maps<T>& y) {
  for (size_t k = 0; k < y.data.size(); ++k) y.data[k] += x.data[k];
}

// Mean and biased variance of channel c over the rows for which in_group(row), in two passes.
template <typename T, typename InGroup>
std::pair<T, T> mean_and_variance(const Maps<T>& x, int64_t c, double count, InGroup&& in_group) {
  T mean(0.0), var(0.0);
  const T share(1.0 / count);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t p = 0; p < x.places() && in_group(i); ++p) mean += share * x.map(i, c)[p];
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t p = 0; p < x.places() && in_group(i); ++p) {
      const T d = x.map(i, c)[p] - mean;
      var += share * d * d;
    }
  }
  return {mean, var};
}

}  // namespace simclr::test
