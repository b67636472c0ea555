#include "tests/nn/reference_network.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/nn/reference_layers.h"

namespace simclr::test {
namespace {

// One forward pass: the weights and what all layers of it share. T: double or Dual.
template <typename T>
struct Pass {
  const std::map<std::string, std::vector<T>>& weights;
  const ModelSettings& settings;
  int64_t samples;  // of a shard
  bool train;
  StatisticsByName* statistics = nullptr;

  Maps<T> convolve(const std::string& name, const Maps<T>& x, const ConvHow& how) const {
    return conv(x, weights.at(name + ".weight"), how);
  }

  Maps<T> normalize(const std::string& name, Maps<T> x) const {
    const auto &gamma = weights.at(name + ".weight"), &beta = weights.at(name + ".bias");
    const int groups = train && settings.batch_norm.views == BatchNormViews::kSeparate ? 2 : 1;
    const int64_t group_rows = x.rows / groups;
    const auto count = static_cast<double>(group_rows * x.places());
    for (int g = 0; g < groups; ++g) {
      const auto in_group = [&](int64_t i) { return groups == 1 || i % samples / (samples / 2) == g; };
      BatchStatistics seen;
      for (int64_t c = 0; c < x.channels; ++c) {
        const auto k = static_cast<size_t>(c);
        T mean(0.0), var(0.0);
        if (train) {
          std::tie(mean, var) = mean_and_variance(x, c, count, in_group);
          seen.mean.push_back(value_of(mean));
          seen.var.push_back(value_of(var) * count / (count - 1));
        } else {
          mean = weights.at(name + ".running_mean")[k];
          var = weights.at(name + ".running_var")[k];
        }
        const T scale = gamma[k] / square_root(var + T(settings.batch_norm.eps));
        for (int64_t i = 0; i < x.rows; ++i)
          for (int64_t p = 0; p < x.places() && in_group(i); ++p)
            x.map(i, c)[p] = scale * (x.map(i, c)[p] - mean) + beta[k];
      }
      if (statistics) (*statistics)[name].push_back(seen);
    }
    return x;
  }

  Maps<T> basic_rows(const std::string& name, const Maps<T>& x, int64_t planes, int64_t stride) const {
    Maps<T> h = normalize(name + ".bn1", convolve(name + ".conv1", x, {.out = planes, .stride = stride}));
    relu(h);
    return normalize(name + ".bn2", convolve(name + ".conv2", h, {.out = planes}));
  }

  Maps<T> bottleneck_rows(const std::string& name, const Maps<T>& x, int64_t planes, int64_t stride) const {
    Maps<T> narrow = normalize(name + ".bn1", convolve(name + ".conv1", x, {.out = planes, .kernel = 1, .padding = 0}));
    relu(narrow);
    Maps<T> h = normalize(name + ".bn2", convolve(name + ".conv2", narrow, {.out = planes, .stride = stride}));
    relu(h);
    return normalize(name + ".bn3", convolve(name + ".conv3", h, {.out = 4 * planes, .kernel = 1, .padding = 0}));
  }

  Maps<T> block(const std::string& name, const Maps<T>& x, int64_t planes, int64_t stride) const {
    const bool bottleneck = settings.encoder.depth == 50;
    const int64_t out = bottleneck ? 4 * planes : planes;
    Maps<T> y = bottleneck ? bottleneck_rows(name, x, planes, stride) : basic_rows(name, x, planes, stride);
    if (stride != 1 || x.channels != out) {
      const ConvHow how{.out = out, .kernel = 1, .stride = stride, .padding = 0};
      add(normalize(name + ".downsample.1", convolve(name + ".downsample.0", x, how)), y);
    } else {
      add(x, y);
    }
    relu(y);
    return y;
  }

  Maps<T> encoder(Maps<T> x) const {
    const EncoderSettings& e = settings.encoder;
    const bool imagenet = e.stem == Stem::kImagenet;
    const ConvHow stem = imagenet ? ConvHow{e.width, 7, 2, 3} : ConvHow{e.width, 3, 1, 1};
    x = normalize("bn1", convolve("conv1", x, stem));
    relu(x);
    if (imagenet) x = max_pool(x);
    const int deep[] = {3, 4, 6, 3};  // ResNet-34 and ResNet-50
    for (int stage = 0; stage < 4; ++stage)
      for (int i = 0; i < (e.depth == 10 ? 1 : e.depth == 18 ? 2 : deep[stage]); ++i)
        x = block("layer" + std::to_string(stage + 1) + "." + std::to_string(i), x, e.width << stage,
                  stage > 0 && i == 0 ? 2 : 1);
    return mean_over_places(x);
  }

  Maps<T> projector(Maps<T> x) const {
    const ProjectorSettings& p = settings.projector;
    int index = 0;  // in a torch.nn.Sequential of Linear, [BatchNorm1d,] ReLU, ..., Linear
    for (int layer = 0; layer < p.layers; ++layer) {
      const bool last = layer == p.layers - 1;
      const std::string name = "projector." + std::to_string(index);
      // A linear layer is a 1x1 convolution of 1x1 maps.
      x = convolve(name, x, {.out = last ? p.output : p.hidden, .kernel = 1, .padding = 0});
      if (const auto bias = weights.find(name + ".bias"); bias != weights.end())
        for (size_t k = 0; k < x.data.size(); ++k) x.data[k] += bias->second[k % bias->second.size()];
      if (last) break;
      if (p.batch_norm) x = normalize("projector." + std::to_string(++index), x);
      relu(x);
      index += 2;
    }
    return x;
  }
};

template <typename T>
Maps<T> images(const std::vector<double>& x, int64_t size) {
  Maps<T> maps(static_cast<int64_t>(x.size()) / (3 * size * size), 3, size, size);
  std::copy(x.begin(), x.end(), maps.data.begin());
  return maps;
}

}  // namespace

std::vector<double> ReferenceNetwork::project(const Tensors& weights, const std::vector<double>& x,
                                              StatisticsByName* statistics) const {
  const Pass<double> pass{weights, settings_, samples_, true, statistics};
  return pass.projector(pass.encoder(images<double>(x, image_size_))).data;
}

std::array<std::vector<double>, kDirections> ReferenceNetwork::project_slopes(
    const Tensors& weights, const std::vector<double>& x, const std::array<Direction, kDirections>& directions) const {
  std::map<std::string, std::vector<Dual>> duals;
  for (const auto& [name, values] : weights) duals[name] = {values.begin(), values.end()};
  for (size_t k = 0; k < kDirections; ++k) {
    const auto& [name, d] = directions[k];
    for (size_t i = 0; i < d.size(); ++i) duals.at(name)[i].slope[k] = d[i];
  }
  const Pass<Dual> pass{duals, settings_, samples_, true};
  const auto z = pass.projector(pass.encoder(images<Dual>(x, image_size_)));
  std::array<std::vector<double>, kDirections> slopes;
  for (size_t k = 0; k < kDirections; ++k)
    for (const Dual& v : z.data) slopes[k].push_back(v.slope[k]);
  return slopes;
}

std::vector<double> ReferenceNetwork::encode(const Tensors& weights, const std::vector<double>& x) const {
  return Pass<double>{weights, settings_, samples_, false}.encoder(images<double>(x, image_size_)).data;
}

}  // namespace simclr::test
