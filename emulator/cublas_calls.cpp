// cuBLAS: the products, in single precision and with types chosen at run time.
#include <cublas_v2.h>

#include "emulator/cublas_product.h"
#include "emulator/runtime.h"

namespace simclr::emulator {

namespace {

// The manual's table for cublasGemmEx, the emulated part: products of float or bfloat16, summed as float. The
// modes that may round operands of type float (TF32 and the like) do not round them here.
cublasStatus_t check_types(const char* call, cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t type) {
  const bool plain = type == CUBLAS_COMPUTE_32F || type == CUBLAS_COMPUTE_32F_PEDANTIC;
  const bool fast = type == CUBLAS_COMPUTE_32F_FAST_TF32 || type == CUBLAS_COMPUTE_32F_FAST_16BF ||
                    type == CUBLAS_COMPUTE_32F_FAST_16F;
  const bool floats = a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
  const bool bfloats = a == CUDA_R_16BF && b == CUDA_R_16BF && (c == CUDA_R_16BF || c == CUDA_R_32F);
  if ((floats && (plain || fast)) || (bfloats && plain)) return CUBLAS_STATUS_SUCCESS;
  complain("%s: types A %d, B %d, C %d with compute type %d are not in the table, or not emulated", call, a, b, c,
           type);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

// Scalars on the host are read at the call.
cublasStatus_t multiply_scaled(cublasHandle_t handle, Product p, const void* alpha, const void* beta) {
  if (alpha == nullptr || beta == nullptr) {
    complain("%s: no alpha or no beta", p.call);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (handle != nullptr && handle->scalars == CUBLAS_POINTER_MODE_HOST) {
    p.alpha = *static_cast<const float*>(alpha);
    p.beta = *static_cast<const float*>(beta);
  }
  return multiply(handle, p);
}

}  // namespace

}  // namespace simclr::emulator

using namespace simclr::emulator;

extern "C" {

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  const Product p{.call = "cublasSgemm",
                  .op_a = op_a,
                  .op_b = op_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = {.data = a, .leading = lda},
                  .b = {.data = b, .leading = ldb},
                  .c = {.data = c, .leading = ldc}};
  return multiply_scaled(handle, p, alpha, beta);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta, float* c,
                                         int ldc, long long stride_c, int batches) {
  const Product p{.call = "cublasSgemmStridedBatched",
                  .op_a = op_a,
                  .op_b = op_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .batches = batches,
                  .a = {.data = a, .leading = lda, .stride = stride_a},
                  .b = {.data = b, .leading = ldb, .stride = stride_b},
                  .c = {.data = c, .leading = ldc, .stride = stride_c}};
  return multiply_scaled(handle, p, alpha, beta);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute_type, cublasGemmAlgo_t /*algorithm*/) {
  const Product p{.call = "cublasGemmEx",
                  .op_a = op_a,
                  .op_b = op_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = {.data = a, .type = a_type, .leading = lda},
                  .b = {.data = b, .type = b_type, .leading = ldb},
                  .c = {.data = c, .type = c_type, .leading = ldc}};
  const cublasStatus_t types = check_types(p.call, a_type, b_type, c_type, compute_type);
  return types == CUBLAS_STATUS_SUCCESS ? multiply_scaled(handle, p, alpha, beta) : types;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long stride_a, const void* b, cudaDataType b_type, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batches, cublasComputeType_t compute_type,
                                          cublasGemmAlgo_t /*algorithm*/) {
  const Product p{.call = "cublasGemmStridedBatchedEx",
                  .op_a = op_a,
                  .op_b = op_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .batches = batches,
                  .a = {.data = a, .type = a_type, .leading = lda, .stride = stride_a},
                  .b = {.data = b, .type = b_type, .leading = ldb, .stride = stride_b},
                  .c = {.data = c, .type = c_type, .leading = ldc, .stride = stride_c}};
  const cublasStatus_t types = check_types(p.call, a_type, b_type, c_type, compute_type);
  return types == CUBLAS_STATUS_SUCCESS ? multiply_scaled(handle, p, alpha, beta) : types;
}

}  // extern "C"
