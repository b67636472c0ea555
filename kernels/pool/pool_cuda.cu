// pool on CUDA, NHWC: four neighboring channels a thread. Sums run in the order of the CPU op, so in float32 the bits
// are its bits. Backward of max pooling gathers: each place of x reads the windows that contain it.
#include <cmath>

#include "kernels/common/launch.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/pool/pool_device.h"

namespace simclr::pool {
namespace {

// y[i, c] = mean over places of x[i, place, c]
template <typename T>
__global__ void average_forward_kernel(const T* x, int64_t rows, int64_t places, int64_t padded, T* y) {
  const int64_t quads = padded / kFour;
  for (int64_t k = thread_index(); k < rows * quads; k += thread_count()) {
    const T* from = x + k / quads * places * padded + k % quads * kFour;
    float sum[kFour] = {};
    for (int64_t p = 0; p < places; ++p) {
      float v[kFour];
      load_four(from + p * padded, v);
      for (int l = 0; l < kFour; ++l) sum[l] += v[l];
    }
    for (float& v : sum) v /= to_float(places);
    store_four(y + k * kFour, sum);
  }
}

// grad_x[i, place, c] = grad_y[i, c] / places
template <typename T>
__global__ void average_backward_kernel(const T* grad_y, int64_t elements, int64_t places, int64_t channels,
                                        int64_t padded, float share, T* grad_x) {
  for (int64_t e = thread_index() * kFour; e < elements; e += thread_count() * kFour) {
    const int64_t row = e / padded, c = e % padded;  // of [samples*places, padded]
    float g[kFour];
    load_four(grad_y + row / places * padded + c, g);
    for (int l = 0; l < kFour; ++l) g[l] = c + l < channels ? g[l] * share : 0.0F;
    store_four(grad_x + e, g);
  }
}

struct MaxPool {
  int height, width, out_height, out_width, quads;  // of x, of y, groups of four channels
};

// A block for each row of y: sample and p.
template <typename T>
__global__ void max_forward_kernel(MaxPool size, const T* x, T* y, uint8_t* winners) {
  const int64_t row = blockIdx.x, sample = row / size.out_height;
  const int p = to_int(row % size.out_height), threads = blockDim.x;
  for (int k = threadIdx.x; k < size.out_width * size.quads; k += threads) {
    const int q = k / size.quads, c = k % size.quads * kFour;
    float most[kFour];
    Four<uint8_t> win;
    for (int l = 0; l < kFour; ++l) {
      most[l] = -INFINITY;
      // The first place of the window that lies inside: it wins when all are -infinity.
      win.value[l] = place_in_window(p == 0, q == 0);
    }
    for (int u = 0; u < 3; ++u) {
      const int iy = 2 * p + u - 1;
      if (iy < 0 || iy >= size.height) continue;
      for (int v = 0; v < 3; ++v) {
        const int ix = 2 * q + v - 1;
        if (ix < 0 || ix >= size.width) continue;
        float in[kFour];
        load_four(x + ((sample * size.height + iy) * size.width + ix) * size.quads * kFour + c, in);
        for (int l = 0; l < kFour; ++l) {
          if (in[l] > most[l] || std::isnan(in[l])) most[l] = in[l], win.value[l] = place_in_window(u, v);
        }
      }
    }
    const int64_t out = (row * size.out_width + q) * size.quads * kFour + c;
    store_four(y + out, most);
    *reinterpret_cast<Four<uint8_t>*>(winners + out) = win;
  }
}

// A block for each row of x: sample and iy. Place iy = 2p + u - 1 is in the windows p = iy/2 and (iy+1)/2.
template <typename T>
__global__ void max_backward_kernel(MaxPool size, const T* grad_y, const uint8_t* winners, T* grad_x) {
  const int64_t row = blockIdx.x, sample = row / size.height;
  const int iy = to_int(row % size.height), threads = blockDim.x;
  for (int k = threadIdx.x; k < size.width * size.quads; k += threads) {
    const int ix = k / size.quads, c = k % size.quads * kFour;
    float sum[kFour] = {};
    for (int p = iy / 2; p <= (iy + 1) / 2 && p < size.out_height; ++p) {
      for (int q = ix / 2; q <= (ix + 1) / 2 && q < size.out_width; ++q) {
        const int here = place_in_window(iy - 2 * p + 1, ix - 2 * q + 1);
        const int64_t out = ((sample * size.out_height + p) * size.out_width + q) * size.quads * kFour + c;
        const Four<uint8_t> win = *reinterpret_cast<const Four<uint8_t>*>(winners + out);
        float g[kFour];
        load_four(grad_y + out, g);
        for (int l = 0; l < kFour; ++l) sum[l] += win.value[l] == here ? g[l] : 0.0F;
      }
    }
    store_four(grad_x + (row * size.width + ix) * size.quads * kFour + c, sum);
  }
}

MaxPool sizes_of(const ConstActivation& x, const ConstActivation& y) {
  return {.height = to_int(x.height),
          .width = to_int(x.width),
          .out_height = to_int(y.height),
          .out_width = to_int(y.width),
          .quads = to_int(x.padded_channels() / kFour)};
}

Grid block_each(int64_t rows) {
  return {.blocks = blocks_of(rows), .threads = kThreads};
}

}  // namespace

void average_forward(const CudaExec& exec, ConstActivation x, Matrix y) {
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "average_pool_forward", elementwise_grid(y.elements() / kFour), average_forward_kernel<T>,
           x.data.as<T>(), y.rows, x.height * x.width, y.stride, y.data.as<T>());
  });
}

void average_backward(const CudaExec& exec, ConstMatrix grad_y, Activation grad_x) {
  const int64_t places = grad_x.height * grad_x.width;
  with_storage(grad_x.type(), [&]<typename T>(T) {
    launch(exec, "average_pool_backward", elementwise_grid(grad_x.elements() / kFour), average_backward_kernel<T>,
           grad_y.data.as<T>(), grad_x.elements(), places, grad_x.channels, grad_y.stride, 1.0F / to_float(places),
           grad_x.data.as<T>());
  });
}

void max_forward(const CudaExec& exec, ConstActivation x, Activation y, uint8_t* winners) {
  with_storage(x.type(), [&]<typename T>(T) {
    launch(exec, "max_pool_forward", block_each(x.shards * x.samples * y.height), max_forward_kernel<T>, sizes_of(x, y),
           x.data.as<T>(), y.data.as<T>(), winners);
  });
}

void max_backward(const CudaExec& exec, ConstActivation grad_y, const uint8_t* winners, Activation grad_x) {
  with_storage(grad_x.type(), [&]<typename T>(T) {
    launch(exec, "max_pool_backward", block_each(grad_x.shards * grad_x.samples * grad_x.height),
           max_backward_kernel<T>, sizes_of(grad_x, grad_y), grad_y.data.as<T>(), winners, grad_x.data.as<T>());
  });
}

}  // namespace simclr::pool
