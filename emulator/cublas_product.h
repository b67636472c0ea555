// C = alpha * op(A) * op(B) + beta * C as cuBLAS means it (column-major, batched), checked and computed on the host.
// The calls of cublas_calls.cpp all end here.
#pragma once

#include <cublas_v2.h>

#include "emulator/runtime.h"

// What a cublasHandle_t points to.
struct cublasContext {
  cudaStream_t stream = nullptr;
  int device = 0;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t scalars = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
  const void* workspace = nullptr;
  bool lost_workspace = false;  // cublasSetStream has put it back to the library's own
};

namespace simclr::emulator {

struct Operand {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  int leading = 0;       // elements from column to column
  long long stride = 0;  // elements from batch to batch
};

struct Product {
  const char* call = "";
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  int m = 0;
  int n = 0;
  int k = 0;
  int batches = 1;
  float alpha = 1.0F;
  float beta = 0.0F;
  Operand a;  // op(A) [m, k]
  Operand b;  // op(B) [k, n]
  Operand c;  // [m, n]
};

// Checks and queues. Loud for everything that the real library refuses, and for what it would not notice: operands that
// run past their allocations, C over A or B, a handle without a stream of its own.
cublasStatus_t multiply(cublasHandle_t handle, const Product& product);

// Computes now, in host memory. The same bits for every number of threads.
void compute(const Product& product);

}  // namespace simclr::emulator
