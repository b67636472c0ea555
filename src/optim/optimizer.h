// Optimizers over a ParameterStore: the state of each and one update per step. The formulas and their order of
// operations are in kernels/optimizer_update.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/config/settings.h"
#include "src/device/context.h"
#include "src/nn/parameter_store.h"

namespace simclr {

// State that is saved in checkpoints, of the shape of its parameter. Name: optimizer.<kind>.<parameter>.
struct OptimizerTensor {
  std::string name;
  std::vector<int64_t> shape;
  float* data = nullptr;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update with the gradients in the store; step counts from 0. Changes nothing when the device flag *skip is set.
  virtual void update(int64_t step, double learning_rate, const int* skip) = 0;
  virtual std::vector<OptimizerTensor> state() const = 0;
};

// One-dimensional parameters (biases, batch norm) get no weight decay unless settings.decay_1d.
std::unique_ptr<Optimizer> make_optimizer(Context& context, const ParameterStore& store,
                                          const OptimizerSettings& settings);

}  // namespace simclr
