// Initial weights as functions of (seed, parameter name, element), drawn in device memory by kernels/initializer: the
// same bits on every rank and every kind of device. For set-up only: initialize_kaiming_normal waits for the device.
#pragma once

#include <cstdint>

#include "src/device/context.h"
#include "src/nn/parameter_store.h"

namespace simclr {

// Normal with standard deviation sqrt(2 / fan_out), fan_out = out * kernel * kernel (He et al. 2015, as torchvision's
// ResNets do for convolutions).
void initialize_kaiming_normal(const Context& context, const Parameter& parameter, uint64_t seed);

// Uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)] (PyTorch's default for nn.Linear, weight and bias).
void initialize_uniform(const Context& context, const Parameter& parameter, int64_t fan_in, uint64_t seed);

void initialize_constant(const Context& context, const Parameter& parameter, float value);

}  // namespace simclr
