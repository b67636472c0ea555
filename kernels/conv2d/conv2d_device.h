// What each device implements of conv2d; called after the shapes have been checked. Not for users of the op.
#pragma once

#include "kernels/conv2d/conv2d.h"

namespace simclr::conv2d {

std::unique_ptr<Conv2dPlan> make_plan(const CpuExec& exec, const Conv2dParams& params, const std::string& choice);
void forward(const CpuExec& exec, const Conv2dPlan& plan, ConstElements x, const float* weight, Elements y);
void backward_data(const CpuExec& exec, const Conv2dPlan& plan, ConstElements grad_y, const float* weight,
                   Elements grad_x);
void backward_weights(const CpuExec& exec, const Conv2dPlan& plan, ConstElements x, ConstElements grad_y,
                      float* grad_weight);

std::unique_ptr<Conv2dPlan> make_plan(const CudaExec& exec, const Conv2dParams& params, const std::string& choice);
void forward(const CudaExec& exec, const Conv2dPlan& plan, ConstElements x, const float* weight, Elements y);
void backward_data(const CudaExec& exec, const Conv2dPlan& plan, ConstElements grad_y, const float* weight,
                   Elements grad_x);
void backward_weights(const CudaExec& exec, const Conv2dPlan& plan, ConstElements x, ConstElements grad_y,
                      float* grad_weight);

}  // namespace simclr::conv2d
