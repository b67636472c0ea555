// Every convolution of the ResNets, as the CUDA backend hands them to cuDNN: images stored with kCudaImageChannels
// channels. Depths 10, 18 and 34 have the same ones, in other numbers; those of depth 50 come with `bottlenecks`.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "kernels/common/cuda_exec.h"
#include "kernels/conv2d/cudnn_graph.h"

namespace simclr::test {

struct NetworkShape {
  bool imagenet_stem = false;
  int64_t image_size = 32, width = 64, samples = 64;
  bool bottlenecks = false;
};

struct LayerShape {
  cudnn::ConvShape conv;
  bool is_stem = false;  // no gradient with respect to images
};

inline std::vector<LayerShape> resnet_convolutions(const NetworkShape& n) {
  std::vector<LayerShape> layers;
  const auto add = [&](int64_t in, int64_t out, int64_t size, int64_t kernel, int64_t stride, bool stem = false) {
    layers.push_back({{.samples = n.samples,
                       .in_channels = in,
                       .out_channels = out,
                       .height = size,
                       .width = size,
                       .kernel = kernel,
                       .stride = stride,
                       .padding = kernel / 2},
                      stem});
    return layers.back().conv.out_height();
  };
  int64_t size = n.imagenet_stem ? add(kCudaImageChannels, n.width, n.image_size, 7, 2, true)
                                 : add(kCudaImageChannels, n.width, n.image_size, 3, 1, true);
  if (n.imagenet_stem) size = (size - 1) / 2 + 1;  // max pool 3x3, stride 2, padding 1
  if (n.bottlenecks) {
    int64_t in = n.width;
    for (int64_t planes = n.width; planes <= 8 * n.width; planes *= 2) {
      const int64_t stride = planes == n.width ? 1 : 2, first = size;
      add(in, planes, first, 1, 1);
      add(in, 4 * planes, first, 1, stride);  // shortcut
      size = add(planes, planes, first, 3, stride);
      add(planes, 4 * planes, size, 1, 1);
      in = 4 * planes;
      add(in, planes, size, 1, 1);  // and the blocks after the first
      add(planes, planes, size, 3, 1);
    }
    return layers;
  }
  add(n.width, n.width, size, 3, 1);
  for (int64_t channels = n.width; channels < 8 * n.width; channels *= 2) {
    add(channels, 2 * channels, size, 1, 2);  // shortcut
    size = add(channels, 2 * channels, size, 3, 2);
    add(2 * channels, 2 * channels, size, 3, 1);
  }
  return layers;
}

// The union over networks, each shape once.
inline std::vector<LayerShape> distinct_convolutions(const std::vector<NetworkShape>& networks) {
  std::vector<LayerShape> result;
  std::set<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>> seen;
  for (const auto& network : networks)
    for (const auto& layer : resnet_convolutions(network)) {
      const auto& c = layer.conv;
      if (seen.insert({c.samples, c.in_channels, c.out_channels, c.height, c.kernel, c.stride}).second)
        result.push_back(layer);
    }
  return result;
}

}  // namespace simclr::test
