// What each device implements of batch_norm; called after the shapes have been checked. Not for users of the op.
#pragma once

#include "kernels/batch_norm/batch_norm.h"

namespace simclr::batch_norm {

void sums(const CpuExec&, ConstActivation x, int groups, double* sums);
void statistics(const CpuExec&, const double* sums, double eps, const BatchNormStatistics&);
void apply(const CpuExec&, ConstActivation x, const BatchNormApply& how, Elements y);
void backward_sums(const CpuExec&, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                   Elements masked, double* sums);
void parameter_gradients(const CpuExec&, const double* sums, const BatchNormStatistics&, float* grad_gamma,
                         float* grad_beta);
void backward_apply(const CpuExec&, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                    const double* sums, Elements grad_x);
void update_running(const CpuExec&, const BatchNormStatistics&, double momentum, const int* skip, float* running_mean,
                    float* running_var);
void use_running(const CpuExec&, const float* running_mean, const float* running_var, double eps,
                 const BatchNormStatistics&);

void sums(const CudaExec&, ConstActivation x, int groups, double* sums);
void statistics(const CudaExec&, const double* sums, double eps, const BatchNormStatistics&);
void apply(const CudaExec&, ConstActivation x, const BatchNormApply& how, Elements y);
void backward_sums(const CudaExec&, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                   Elements masked, double* sums);
void parameter_gradients(const CudaExec&, const double* sums, const BatchNormStatistics&, float* grad_gamma,
                         float* grad_beta);
void backward_apply(const CudaExec&, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                    const double* sums, Elements grad_x);
void update_running(const CudaExec&, const BatchNormStatistics&, double momentum, const int* skip, float* running_mean,
                    float* running_var);
void use_running(const CudaExec&, const float* running_mean, const float* running_var, double eps,
                 const BatchNormStatistics&);

}  // namespace simclr::batch_norm
