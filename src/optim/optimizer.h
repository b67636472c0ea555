// Optimizers over a ParameterStore: what each keeps beside the weights, and one update per step. The formulas and their
// order of operations stand in kernels/optimizer_update.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/config/settings.h"
#include "src/device/context.h"
#include "src/nn/parameter_store.h"

namespace simclr {

// State that a checkpoint must hold, shaped like its parameter. Name: optimizer.<kind>.<parameter>.
struct OptimizerTensor {
  std::string name;
  std::vector<int64_t> shape;
  float* data = nullptr;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update with the gradients in the store; step counts from 0. Does nothing when *skip is not 0.
  virtual void update(int64_t step, double learning_rate, const int* skip) = 0;
  virtual std::vector<OptimizerTensor> state() const = 0;
};

// Parameters of one dimension (biases, batch norm) are left out of weight decay unless decay_1d.
std::unique_ptr<Optimizer> make_optimizer(Context& context, const ParameterStore& store,
                                          const OptimizerSettings& settings);

}  // namespace simclr
