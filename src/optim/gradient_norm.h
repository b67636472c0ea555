// The norm of the gradient of all parameters, for the log: |dL/dw| over the global batch, before weight decay.
#pragma once

#include "kernels/squared_norm/squared_norm.h"
#include "src/nn/parameter_store.h"
#include "src/optim/device_table.h"

namespace simclr {

class GradientNorm {
 public:
  GradientNorm(Context& context, const ParameterStore& store);

  // Queues the sum of squares of all gradients and returns the device address of the result: one double, valid until
  // the next call. Its bits depend on the gradients alone (kernels/squared_norm).
  const double* queue_square();

 private:
  Context& context_;
  DeviceTable<NormRun> runs_;
  Buffer squares_, total_;  // [parameters], [1]
};

}  // namespace simclr
