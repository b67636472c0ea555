// What each device implements of optimizer_update. Not for users of the op.
#pragma once

#include "kernels/optimizer_update/optimizer_update.h"

namespace simclr::optimizer_update {

void sgd(const CpuExec&, const ParameterTable& table, const SgdUpdate& how, const int* skip);
void adamw(const CpuExec&, const ParameterTable& table, const AdamWUpdate& how, const int* skip);
void lars(const CpuExec&, const ParameterTable& table, const LarsUpdate& how, const double* squares, float* rates,
          const int* skip);
void flag_non_finite(const CpuExec&, std::span<const float> values, int* flag);
void flag_non_finite(const CpuExec&, std::span<const double> values, int* flag);

void sgd(const CudaExec&, const ParameterTable& table, const SgdUpdate& how, const int* skip);
void adamw(const CudaExec&, const ParameterTable& table, const AdamWUpdate& how, const int* skip);
void lars(const CudaExec&, const ParameterTable& table, const LarsUpdate& how, const double* squares, float* rates,
          const int* skip);
void flag_non_finite(const CudaExec&, std::span<const float> values, int* flag);
void flag_non_finite(const CudaExec&, std::span<const double> values, int* flag);

}  // namespace simclr::optimizer_update
