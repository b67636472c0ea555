// The product behind every call of cuBLAS: oneDNN's sgemm, fed in single precision.
#include "emulator/cublas_product.h"

#include <cuda_bf16.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace simclr::emulator {

namespace {

size_t size_of(cudaDataType type) {
  return type == CUDA_R_32F ? sizeof(float) : sizeof(__nv_bfloat16);
}

struct Extent {
  int rows;
  int columns;
};

Extent extent_a(const Product& p) {
  return p.op_a == CUBLAS_OP_N ? Extent{p.m, p.k} : Extent{p.k, p.m};
}
Extent extent_b(const Product& p) {
  return p.op_b == CUBLAS_OP_N ? Extent{p.k, p.n} : Extent{p.n, p.k};
}

// From the first byte of a matrix to behind its last, all batches.
size_t bytes_of(const Operand& operand, Extent e, int batches) {
  if (e.rows == 0 || e.columns == 0) return 0;
  const auto one = static_cast<size_t>(operand.leading) * static_cast<size_t>(e.columns - 1) + e.rows;
  return (static_cast<size_t>(operand.stride) * static_cast<size_t>(batches - 1) + one) * size_of(operand.type);
}

bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto* x = static_cast<const char*>(a);
  const auto* y = static_cast<const char*>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

bool check_operand(const Product& p, const char* name, const Operand& operand, Extent e, int device) {
  if (operand.leading < std::max(1, e.rows)) {
    complain("%s: the leading dimension of %s is %d, it has %d rows", p.call, name, operand.leading, e.rows);
    return false;
  }
  if (operand.stride < 0) {
    complain("%s: the stride of %s is %lld", p.call, name, operand.stride);
    return false;
  }
  const size_t bytes = bytes_of(operand, e, p.batches);
  if (inside_device(operand.data, bytes, device)) return true;
  complain("%s: %s takes %zu bytes, it points to %s", p.call, name, bytes, describe_pointer(operand.data));
  return false;
}

cublasStatus_t check_handle(cublasHandle_t handle, const char* call) {
  if (handle == nullptr) return complain("%s: no handle", call), CUBLAS_STATUS_NOT_INITIALIZED;
  if (broken() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (handle->scalars != CUBLAS_POINTER_MODE_HOST) {
    complain("%s: scalars on the device are not emulated", call);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!check_stream(handle->stream, call)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (stream_device(handle->stream) != handle->device || current_device() != handle->device) {
    complain("%s: handle of device %d, stream of device %d, current device %d", call, handle->device,
             stream_device(handle->stream), current_device());
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (handle->lost_workspace) {
    complain("%s: cublasSetStream came after cublasSetWorkspace and has put the workspace back to the library's own",
             call);
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

bool is_operation(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

cublasStatus_t check_product(const Product& p, int device) {
  if (!is_operation(p.op_a) || !is_operation(p.op_b)) {
    complain("%s: operations %d and %d", p.call, static_cast<int>(p.op_a), static_cast<int>(p.op_b));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batches < 0) {
    complain("%s: sizes m %d, n %d, k %d, batches %d", p.call, p.m, p.n, p.k, p.batches);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Extent c{p.m, p.n};
  if (p.batches == 0) return CUBLAS_STATUS_SUCCESS;
  if (!check_operand(p, "A", p.a, extent_a(p), device) || !check_operand(p, "B", p.b, extent_b(p), device) ||
      !check_operand(p, "C", p.c, c, device)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Operand one = p.c;
  one.stride = 0;
  if (p.batches > 1 && static_cast<size_t>(p.c.stride) * size_of(p.c.type) < bytes_of(one, c, 1)) {
    complain("%s: batches of C overlap, their stride is %lld", p.call, p.c.stride);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const size_t c_bytes = bytes_of(p.c, c, p.batches);
  if (overlap(p.c.data, c_bytes, p.a.data, bytes_of(p.a, extent_a(p), p.batches)) ||
      overlap(p.c.data, c_bytes, p.b.data, bytes_of(p.b, extent_b(p), p.batches))) {
    complain("%s: C overlaps an operand", p.call);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// ---- on the host ----

const void* batch_of(const Operand& operand, int batch) {
  return static_cast<const char*>(operand.data) +
         static_cast<size_t>(operand.stride) * static_cast<size_t>(batch) * size_of(operand.type);
}

// A matrix as floats: itself, or a dense copy.
struct Floats {
  const float* data;
  int leading;
  std::vector<float> copy;
};

Floats as_floats(const Operand& operand, Extent e, int batch) {
  const void* data = batch_of(operand, batch);
  if (operand.type == CUDA_R_32F) return {static_cast<const float*>(data), operand.leading, {}};
  Floats f{nullptr, std::max(1, e.rows), std::vector<float>(static_cast<size_t>(e.rows) * e.columns)};
  const auto* from = static_cast<const __nv_bfloat16*>(data);
  for (int j = 0; j < e.columns; ++j) {
    for (int i = 0; i < e.rows; ++i) {
      f.copy[static_cast<size_t>(j) * e.rows + i] =
          __bfloat162float(from[static_cast<size_t>(j) * operand.leading + i]);
    }
  }
  f.data = f.copy.data();
  return f;
}

// c [m, n] column-major with c's leading dimension. Row-major it is c^T = op(b)^T op(a)^T, which is oneDNN's order.
void single_product(const Product& p, const Floats& a, const Floats& b, float beta, float* c, int leading) {
  if (p.k == 0) {
    for (int j = 0; j < p.n; ++j) {
      float* column = c + static_cast<size_t>(j) * leading;
      for (int i = 0; i < p.m; ++i) column[i] = beta == 0.0F ? 0.0F : beta * column[i];
    }
    return;
  }
  const auto flag = [](cublasOperation_t op) { return op == CUBLAS_OP_N ? 'N' : 'T'; };
  const dnnl_status_t status = dnnl_sgemm(flag(p.op_b), flag(p.op_a), p.n, p.m, p.k, p.alpha, b.data, b.leading, a.data,
                                          a.leading, beta, c, leading);
  if (status != dnnl_success) break_device(cudaErrorLaunchFailure, "%s: dnnl_sgemm returned %d", p.call, status);
}

void store_bfloat16(const Product& p, const std::vector<float>& product, __nv_bfloat16* c) {
  for (int j = 0; j < p.n; ++j) {
    for (int i = 0; i < p.m; ++i) {
      __nv_bfloat16& place = c[static_cast<size_t>(j) * p.c.leading + i];
      const float before = p.beta == 0.0F ? 0.0F : p.beta * __bfloat162float(place);
      place = __float2bfloat16(product[static_cast<size_t>(j) * p.m + i] + before);
    }
  }
}

}  // namespace

void compute(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);  // oneDNN's bits depend on it
  for (int batch = 0; batch < p.batches; ++batch) {
    const Floats a = as_floats(p.a, extent_a(p), batch);
    const Floats b = as_floats(p.b, extent_b(p), batch);
    void* c = const_cast<void*>(batch_of(p.c, batch));
    if (p.c.type == CUDA_R_32F) {
      single_product(p, a, b, p.beta, static_cast<float*>(c), p.c.leading);
    } else {
      std::vector<float> product(static_cast<size_t>(p.m) * p.n);
      single_product(p, a, b, 0.0F, product.data(), p.m);
      store_bfloat16(p, product, static_cast<__nv_bfloat16*>(c));
    }
  }
  omp_set_num_threads(threads);
}

cublasStatus_t multiply(cublasHandle_t handle, const Product& product) {
  std::lock_guard guard(runtime_lock());
  if (const cublasStatus_t status = check_handle(handle, product.call); status != CUBLAS_STATUS_SUCCESS) return status;
  if (const cublasStatus_t status = check_product(product, handle->device); status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const cudaError_t error = enqueue(handle->stream, product.call, [product] { compute(product); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace simclr::emulator
