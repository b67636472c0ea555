// The network of src/nn once more, as plain loops over NCHW arrays in double, forward only: what z, the statistics and,
// by dual numbers, the gradients are held to. It shares nothing with src/nn but the names of the weights. Not fast.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/config/settings.h"
#include "tests/nn/dual.h"

namespace simclr::test {

// Weights and running statistics by torchvision's names.
using Tensors = std::map<std::string, std::vector<double>>;

// Of one batch norm and one group of views; the variance is unbiased, as running statistics want it.
struct BatchStatistics {
  std::vector<double> mean, var;  // [C]
};
// By the batch norm's name (layer1.0.bn1), one entry per group of views.
using StatisticsByName = std::map<std::string, std::vector<BatchStatistics>>;

// A way to move the weights: one parameter by d, the others not at all. No name: none moves.
struct Direction {
  std::string parameter;
  std::vector<double> d;
};

class ReferenceNetwork {
 public:
  // samples: views of one shard; the first half of them is view 1.
  ReferenceNetwork(const ModelSettings& settings, int64_t image_size, int64_t samples)
      : settings_(settings), image_size_(image_size), samples_(samples) {}

  // Training mode. x [rows, 3, size, size] -> z [rows, C].
  std::vector<double> project(const Tensors& weights, const std::vector<double>& x,
                              StatisticsByName* statistics = nullptr) const;

  // dz/dt along each direction, exact but for rounding in double: kDirections times [rows, C].
  std::array<std::vector<double>, kDirections> project_slopes(
      const Tensors& weights, const std::vector<double>& x, const std::array<Direction, kDirections>& directions) const;

  // Evaluation mode, with the running statistics: h [rows, D].
  std::vector<double> encode(const Tensors& weights, const std::vector<double>& x) const;

 private:
  ModelSettings settings_;
  int64_t image_size_, samples_;
};

}  // namespace simclr::test
