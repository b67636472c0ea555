// linear on CUDA: one product of cuBLAS per shard, of one shape for every number of shards, so of the same bits. cuBLAS
// counts matrices by columns: what is row-major [rows, cols] here is its [cols, rows], so every product is given
// transposed, its factors swapped. Operands are stored as the views say, weights are rounded to that type first; sums
// are fp32.
#include "kernels/common/cuda_check.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/ordered_tree.cuh"
#include "kernels/common/storage.cuh"
#include "kernels/linear/linear_device.h"

namespace simclr::linear {
namespace {

constexpr int kTileColumns = 32;
constexpr int kLanes = 8;  // threads that share the rows of a column

// A factor or the result of a product: row-major, rows `stride` elements apart.
struct Operand {
  const void* data;
  int64_t stride;
  DataType type;
  cublasOperation_t op = CUBLAS_OP_N;
};

int as_int(int64_t value) {
  SIMCLR_CHECK(value <= INT32_MAX, "a product with a size of {}", value);
  return to_int(value);
}
cudaDataType cuda_type(DataType type) {
  return type == DataType::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

// out [m, n] = op(left) [m, k] * op(right) [k, n]
void multiply(const CudaExec& exec, const Operand& left, const Operand& right, int64_t m, int64_t n, int64_t k,
              const Operand& out) {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  if (left.type == DataType::kFloat32) {
    compute = exec.precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
  } else {
    // Else parts of a sum may be added up in the type of the result.
    const int mode = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    SIMCLR_CUBLAS(cublasSetMathMode(exec.blas, static_cast<cublasMath_t>(mode)));
  }
  const float one = 1.0F, zero = 0.0F;
  SIMCLR_CUBLAS(cublasGemmEx(exec.blas, right.op, left.op, as_int(n), as_int(m), as_int(k), &one, right.data,
                             cuda_type(right.type), as_int(right.stride), left.data, cuda_type(left.type),
                             as_int(left.stride), &zero, const_cast<void*>(out.data), cuda_type(out.type),
                             as_int(out.stride), compute, CUBLAS_GEMM_DEFAULT));
}

// Rows [shard * rows, (shard + 1) * rows) of a matrix.
Operand shard_of(const ConstMatrix& m, int64_t shard, int64_t rows, cublasOperation_t op = CUBLAS_OP_N) {
  return {m.row(shard * rows).address(), m.stride, m.type(), op};
}

__global__ void to_bfloat16_kernel(const float* x, int64_t elements, __nv_bfloat16* y) {
  for (int64_t k = thread_index(); k < elements; k += thread_count()) y[k] = __float2bfloat16(x[k]);
}

// W [out, in] as operands of `type`: itself, or rounded into the workspace.
Operand weights_as(const CudaExec& exec, DataType type, const float* weight, int64_t out, int64_t in) {
  if (type == DataType::kFloat32) return {weight, in, type};
  auto* rounded = workspace_as<__nv_bfloat16>(exec, out * in);
  launch(exec, "linear_round_weights", elementwise_grid(out * in), to_bfloat16_kernel, weight, out * in, rounded);
  return {rounded, in, type};
}

// y += bias (if any) within the width; y = 0 beyond it.
template <typename T>
__global__ void finish_rows_kernel(int64_t elements, int64_t cols, int64_t stride, const float* bias, T* y) {
  for (int64_t k = thread_index(); k < elements; k += thread_count()) {
    const int64_t column = k % stride;
    if (column >= cols) {
      y[k] = to_storage<T>(0.0F);
    } else if (bias) {
      y[k] = to_storage<T>(to_float(y[k]) + bias[column]);
    }
  }
}

void finish_rows(const CudaExec& exec, const float* bias, const Matrix& y) {
  if (!bias && y.stride == y.cols) return;
  with_storage(y.type(), [&]<typename T>(T) {
    launch(exec, "linear_finish_rows", elementwise_grid(y.elements()), finish_rows_kernel<T>, y.elements(), y.cols,
           y.stride, bias, y.data.as<T>());
  });
}

// A tile of columns of one shard: sums [shards, part_stride], sums[s][o] = sum over the shard's rows of grad_y[.][o].
template <typename T>
__global__ void column_sums_kernel(const T* grad_y, int64_t rows, int64_t cols, int64_t stride, int64_t part_stride,
                                   float* sums) {
  __shared__ double shared[kLanes][kTileColumns];
  const int column = threadIdx.x, lane = threadIdx.y;
  const int64_t shard = blockIdx.y, o = int64_t{blockIdx.x} * kTileColumns + column;
  double sum = 0;
  if (o < cols)
    for (int64_t i = lane; i < rows; i += kLanes) sum += to_float(grad_y[(shard * rows + i) * stride + o]);
  shared[lane][column] = sum;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) shared[lane][column] += shared[lane + half][column];
  }
  if (lane == 0 && o < cols) sums[shard * part_stride + o] = to_float(shared[0][column]);
}

// parts [shards, weights, then biases] to the two gradients, by the ordered tree.
__global__ void add_shards_kernel(const float* parts, int shards, int64_t part_stride, int64_t weights,
                                  int64_t elements, float* grad_weight, float* grad_bias) {
  for (int64_t k = thread_index(); k < elements; k += thread_count()) {
    const float sum = ordered_tree_value<float>([&](int s) { return parts[s * part_stride + k]; }, shards);
    (k < weights ? grad_weight[k] : grad_bias[k - weights]) = sum;
  }
}

}  // namespace

void forward(const CudaExec& exec, int64_t shards, ConstMatrix x, const float* weight, const float* bias, Matrix y) {
  const int64_t n = x.rows / shards;
  Operand w = weights_as(exec, x.type(), weight, y.cols, x.cols);
  w.op = CUBLAS_OP_T;
  for (int64_t s = 0; s < shards; ++s)  // y = x W^T
    multiply(exec, shard_of(x, s, n), w, n, y.cols, x.cols, shard_of(y, s, n));
  finish_rows(exec, bias, y);
}

void backward_data(const CudaExec& exec, int64_t shards, ConstMatrix grad_y, const float* weight, Matrix grad_x) {
  const int64_t n = grad_x.rows / shards;
  const Operand w = weights_as(exec, grad_y.type(), weight, grad_y.cols, grad_x.cols);
  for (int64_t s = 0; s < shards; ++s)  // grad_x = grad_y W
    multiply(exec, shard_of(grad_y, s, n), w, n, grad_x.cols, grad_y.cols, shard_of(grad_x, s, n));
  finish_rows(exec, nullptr, grad_x);
}

void backward_weights(const CudaExec& exec, int64_t shards, ConstMatrix x, ConstMatrix grad_y, float* grad_weight,
                      float* grad_bias) {
  const int64_t n = x.rows / shards, in = x.cols, out = grad_y.cols, weights = out * in;
  const int64_t part_stride = linear_part_stride(in, out);
  float* parts = workspace_as<float>(exec, shards * part_stride);  // [shards, out*in + out]
  for (int64_t s = 0; s < shards; ++s)                             // grad_W = grad_y^T x
    multiply(exec, shard_of(grad_y, s, n, CUBLAS_OP_T), shard_of(x, s, n), out, in, n,
             {parts + s * part_stride, in, DataType::kFloat32});
  if (grad_bias) {
    const Grid tiles{.blocks = dim3(blocks_of(ceil_div(out, kTileColumns)), blocks_of(shards)),
                     .threads = dim3(kTileColumns, kLanes)};
    with_storage(grad_y.type(), [&]<typename T>(T) {
      launch(exec, "linear_column_sums", tiles, column_sums_kernel<T>, grad_y.data.as<T>(), n, out, grad_y.stride,
             part_stride, parts + weights);
    });
  }
  const int64_t elements = grad_bias ? weights + out : weights;
  launch(exec, "linear_add_shards", elementwise_grid(elements), add_shards_kernel, parts, tree_parts(shards),
         part_stride, weights, elements, grad_weight, grad_bias);
}

}  // namespace simclr::linear
