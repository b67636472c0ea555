// What each device implements of initializer. Not for users of the op.
#pragma once

#include "kernels/initializer/initializer.h"

namespace simclr::initializer {

void draw_normal(const CpuExec&, const WeightStream& stream, double sigma, std::span<float> values, HardToRound* hard);
void draw_uniform(const CpuExec&, const WeightStream& stream, double bound, std::span<float> values);

void draw_normal(const CudaExec&, const WeightStream& stream, double sigma, std::span<float> values, HardToRound* hard);
void draw_uniform(const CudaExec&, const WeightStream& stream, double bound, std::span<float> values);

}  // namespace simclr::initializer
