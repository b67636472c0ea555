// Return codes of the CUDA runtime, cuBLAS and cuDNN turned into Error(kDevice) that names call, file and line. A thin
// macro over functions, as for every other library.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

namespace simclr {

// Throw Error(kDevice) unless status is success.
void cuda_check(cudaError_t status, const char* call, const char* file, int line);
void cublas_check(cublasStatus_t status, const char* call, const char* file, int line);
void cudnn_check(cudnnStatus_t status, const char* call, const char* file, int line);

}  // namespace simclr

#define SIMCLR_CUDA(call) ::simclr::cuda_check((call), #call, __FILE__, __LINE__)
#define SIMCLR_CUBLAS(call) ::simclr::cublas_check((call), #call, __FILE__, __LINE__)
#define SIMCLR_CUDNN(call) ::simclr::cudnn_check((call), #call, __FILE__, __LINE__)
