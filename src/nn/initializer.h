// Initial weights as functions of (seed, parameter name, element): every rank makes the same ones, in any order. They
// are drawn on the host and copied to the device, so that a run starts from the same bits on every kind of device.
#pragma once

#include <cstdint>

#include "src/device/device.h"
#include "src/nn/parameter_store.h"

namespace simclr {

// Normal with standard deviation sqrt(2 / fan_out), fan_out = out * kernel * kernel (He et al. 2015, as torchvision's
// ResNets do for convolutions).
void initialize_kaiming_normal(Device& device, const Parameter& parameter, uint64_t seed);

// Uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)] (PyTorch's default for nn.Linear, weight and bias).
void initialize_uniform(Device& device, const Parameter& parameter, int64_t fan_in, uint64_t seed);

void initialize_constant(Device& device, const Parameter& parameter, float value);

}  // namespace simclr
