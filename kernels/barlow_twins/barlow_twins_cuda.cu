// CUDA: products by cuBLAS, one call per shard and product, of one shape for every number of shards; all else in
// kernels of its own. Sums over images and over [C, C] are in double, in an order that follows from n and C alone.
#include <cmath>

#include "kernels/barlow_twins/barlow_twins_device.h"
#include "kernels/common/block_sum.cuh"
#include "kernels/common/cuda_check.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/numbers.h"
#include "kernels/common/ordered_tree.cuh"
#include "kernels/common/storage.cuh"

namespace simclr::barlow_twins {
namespace {

constexpr int kTileColumns = 32;
constexpr int kLanes = 16;  // threads that share the rows of a column

// The problem as kernels take it. A part is one view of one shard: n rows.
struct Shape {
  int64_t images, columns, stride;  // n, C, elements from row to row
  double batch;
};

Shape shape_of(const ConstMatrix& m, const BarlowTwinsProblem& p) {
  return {p.shard_images, p.columns, m.stride, as_double(p.batch)};
}

// A block for each tile of columns in each part; `parts` may be one.
Grid tile_grid(int64_t columns, int64_t parts) {
  return {.blocks = dim3(static_cast<unsigned>(ceil_div(columns, kTileColumns)), static_cast<unsigned>(parts)),
          .threads = dim3(kTileColumns, kLanes)};
}

__device__ int64_t column_of_thread() {
  return static_cast<int64_t>(blockIdx.x) * kTileColumns + threadIdx.x;
}

// The sum over the lanes of a column, for lane 0. Every thread of the block takes part.
__device__ double add_lanes(double value, double (&shared)[kLanes][kTileColumns]) {
  const int column = threadIdx.x, lane = threadIdx.y;
  shared[lane][column] = value;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) shared[lane][column] += shared[lane + half][column];
  }
  return lane == 0 ? shared[0][column] : 0.0;
}

// ---- products, row-major as everywhere in this program; cuBLAS takes them as their transposes ----

struct Factor {
  const float* data;
  int64_t stride;
  cublasOperation_t op = CUBLAS_OP_N;
};

int as_int(int64_t value) {
  SIMCLR_CHECK(value <= INT32_MAX, "a product with a size of {}", value);
  return static_cast<int>(value);
}

// out [rows, cols] = op(left) [rows, terms] op(right) [terms, cols], rows of out `cols` apart, in true single
// precision: no TF32, whatever the handle is set to.
void multiply(const CudaExec& exec, const Factor& left, const Factor& right, int64_t rows, int64_t cols, int64_t terms,
              float* out) {
  const float one = 1.0F, zero = 0.0F;
  SIMCLR_CUBLAS(cublasGemmEx(exec.blas, right.op, left.op, as_int(cols), as_int(rows), as_int(terms), &one, right.data,
                             CUDA_R_32F, as_int(right.stride), left.data, CUDA_R_32F, as_int(left.stride), &zero, out,
                             CUDA_R_32F, as_int(cols), CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT));
}

// ---- statistics ----

// A tile of a part: sums [parts, C] of z, or with the global sums of z those of (z - mean)^2.
template <typename T>
__global__ void sum_columns_kernel(const T* z, Shape shape, const double* global_sums, double* sums) {
  __shared__ double shared[kLanes][kTileColumns];
  const int64_t c = column_of_thread(), part = blockIdx.y;
  double sum = 0;
  if (c < shape.columns) {
    const double mean = global_sums ? global_sums[part % 2 * shape.columns + c] / shape.batch : 0.0;
    for (int64_t i = threadIdx.y; i < shape.images; i += kLanes) {
      const double value = to_float(z[(part * shape.images + i) * shape.stride + c]) - mean;
      sum += global_sums ? value * value : value;
    }
  }
  sum = add_lanes(sum, shared);
  if (threadIdx.y == 0 && c < shape.columns) sums[part * shape.columns + c] = sum;
}

__global__ void add_shards_kernel(const double* parts, int shards, int64_t elements, double* sums) {
  const int64_t k = thread_index();
  if (k < elements) sums[k] = ordered_tree_value<double>([&](int s) { return parts[s * elements + k]; }, shards);
}

void sum_columns(const CudaExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* global_sums,
                 double* sums) {
  const int64_t elements = 2 * p.columns;
  double* parts = workspace_as<double>(exec, p.shards * elements);  // [shards, 2, C]
  with_storage(z.type(), [&]<typename T>(T) {
    launch(exec, "barlow_twins_sum_columns", tile_grid(p.columns, 2 * p.shards), sum_columns_kernel<T>, z.data.as<T>(),
           shape_of(z, p), global_sums, parts);
  });
  launch(exec, "barlow_twins_add_shards", {.blocks = blocks_of(ceil_div(elements, kThreads)), .threads = kThreads},
         add_shards_kernel, parts, tree_parts(p.shards), elements, sums);
}

// A tile of a part.
template <typename T>
__global__ void standardize_kernel(const T* z, Shape shape, const double* sums, const double* squares, double eps,
                                   float* y, int64_t y_stride, double* inv_std) {
  const int64_t c = column_of_thread(), part = blockIdx.y;
  if (c >= shape.columns) return;
  const int64_t at = part % 2 * shape.columns + c;
  const double mean = sums[at] / shape.batch, inverse = 1.0 / sqrt(squares[at] / shape.batch + eps);
  if (part < 2 && threadIdx.y == 0) inv_std[at] = inverse;
  for (int64_t i = threadIdx.y; i < shape.images; i += kLanes) {
    const int64_t row = part * shape.images + i;
    y[row * y_stride + c] = to_float((to_float(z[row * shape.stride + c]) - mean) * inverse);
  }
}

__global__ void add_kernel(const float* other, int64_t elements, float* sum) {
  const int64_t step = thread_count();
  for (int64_t k = thread_index(); k < elements; k += step) sum[k] += other[k];
}

// ---- loss ----

struct LossScale {
  double lambda, scale, per_image;

  // 1/B sum of G_ij c_ij over a row or column with diagonal d, `squares` the sum of the others' (B c_ij)^2
  __device__ double radial(double d, double squares) const {
    return 2 * scale * per_image * (lambda * squares * per_image * per_image + (d - 1) * d);
  }
};

// A tile of columns of the products [C, C].
__global__ void column_radial_kernel(const float* products, int64_t columns, LossScale scale, double* radial) {
  __shared__ double shared[kLanes][kTileColumns];
  const int64_t c = column_of_thread();
  double squares = 0;
  if (c < columns) {
    for (int64_t i = threadIdx.y; i < columns; i += kLanes) {
      const double value = products[i * columns + c];
      if (i != c) squares += value * value;
    }
  }
  squares = add_lanes(squares, shared);
  if (threadIdx.y == 0 && c < columns) radial[c] = scale.radial(products[c * columns + c] * scale.per_image, squares);
}

// One block a row of the products [C, C], which G / B takes the place of.
__global__ void finish_rows_kernel(float* products, int64_t columns, LossScale scale, double* radial, double* losses) {
  __shared__ double of_warp[kMostWarps];
  const int64_t i = blockIdx.x;
  float* row = products + i * columns;
  const double d = row[i] * scale.per_image;  // c_ii
  double partial = 0;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    const double value = row[j];
    if (j != i) partial += value * value;
  }
  const double squares = block_reduce(partial, Add(), of_warp);  // and everybody has read row[i]
  const double to_grad = 2 * scale.scale * scale.per_image * scale.lambda * scale.per_image;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    row[j] = to_float(j == i ? 2 * scale.scale * scale.per_image * (d - 1) : row[j] * to_grad);
  }
  if (threadIdx.x != 0) return;
  losses[i] = (d - 1) * (d - 1) + scale.lambda * squares * scale.per_image * scale.per_image;
  radial[i] = scale.radial(d, squares);
}

// One block.
__global__ void sum_losses_kernel(const double* losses, int64_t columns, double scale, double* loss) {
  __shared__ double of_warp[kMostWarps];
  double partial = 0;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) partial += losses[i];
  const double sum = block_reduce(partial, Add(), of_warp);
  if (threadIdx.x == 0) *loss = scale * sum;
}

// ---- backward ----

// A tile of a part: from dL/dy, parts of [n, C] `part_elements` apart, to dL/dz. Tiles cover the padding too.
template <typename T>
__global__ void finish_backward_kernel(const float* grad_y, int64_t part_elements, const float* y, int64_t y_stride,
                                       const double* inv_std, const double* radial, Shape shape, T* grad_z) {
  const int64_t c = column_of_thread(), part = blockIdx.y;
  if (c >= shape.stride) return;
  const bool padding = c >= shape.columns;
  const int64_t at = part % 2 * shape.columns + c;
  const double inverse = padding ? 0.0 : inv_std[at], along_y = padding ? 0.0 : radial[at];
  for (int64_t i = threadIdx.y; i < shape.images; i += kLanes) {
    const int64_t row = part * shape.images + i;
    float value = 0.0F;
    if (!padding) {
      const double g = grad_y[part * part_elements + i * shape.columns + c];
      value = to_float(inverse * (g - y[row * y_stride + c] * along_y));
    }
    grad_z[row * shape.stride + c] = to_storage<T>(value);
  }
}

}  // namespace

void sums(const CudaExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, double* sums) {
  sum_columns(exec, z, p, nullptr, sums);
}

void square_sums(const CudaExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                 double* squares) {
  sum_columns(exec, z, p, sums, squares);
}

void standardize(const CudaExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                 const double* squares, const FloatMatrix& y, double* inv_std) {
  with_storage(z.type(), [&]<typename T>(T) {
    launch(exec, "barlow_twins_standardize", tile_grid(p.columns, 2 * p.shards), standardize_kernel<T>, z.data.as<T>(),
           shape_of(z, p), sums, squares, p.eps, y.data, y.stride, inv_std);
  });
}

void products(const CudaExec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p, float* products) {
  const int64_t n = p.shard_images, columns = p.columns, block_rows = cuda_block_rows(columns);
  const int64_t aligned = aligned_elements(block_rows, columns);
  float* waiting = workspace_as<float>(exec, waiting_sums(p.shards) * aligned);
  for (int64_t first = 0; first < columns; first += block_rows) {
    const int64_t count = std::min(block_rows, columns - first);
    const auto matrix = [&](int64_t d) { return d == 0 ? products + first * columns : waiting + (d - 1) * aligned; };
    sum_shards(
        p.shards,
        [&](int64_t shard, int64_t d) {  // y_1^T y_2
          multiply(exec, {y.row(2 * shard * n) + first, y.stride, CUBLAS_OP_T}, {y.row((2 * shard + 1) * n), y.stride},
                   count, columns, n, matrix(d));
        },
        [&](int64_t d) {
          const int64_t elements = count * columns;
          launch(exec, "barlow_twins_add", elementwise_grid(elements), add_kernel, matrix(d + 1), elements, matrix(d));
        });
  }
}

void loss(const CudaExec& exec, const BarlowTwinsProblem& p, float* products_to_grad, double* radial, double* loss) {
  const int64_t columns = p.columns;
  const LossScale scale{p.lambda, p.scale, 1 / as_double(p.batch)};
  double* losses = workspace_as<double>(exec, columns);  // of each row
  launch(exec, "barlow_twins_column_radial", tile_grid(columns, 1), column_radial_kernel, products_to_grad, columns,
         scale, radial + columns);
  launch(exec, "barlow_twins_finish_rows", {.blocks = blocks_of(columns), .threads = kThreads}, finish_rows_kernel,
         products_to_grad, columns, scale, radial, losses);
  launch(exec, "barlow_twins_sum_losses", {.threads = kThreads}, sum_losses_kernel, losses, columns, p.scale, loss);
}

void backward(const CudaExec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p, const float* grad_c,
              const double* inv_std, const double* radial, const Matrix& grad_z) {
  const int64_t n = p.shard_images, columns = p.columns, part_elements = aligned_elements(n, columns);
  auto* grad_y = workspace_as<float>(exec, 2 * p.shards * part_elements);  // [parts][n, C]
  for (int64_t part = 0; part < 2 * p.shards; ++part) {                    // y_2 G^T, y_1 G
    const cublasOperation_t op = part % 2 == 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
    multiply(exec, {y.row((part ^ 1) * n), y.stride}, {grad_c, columns, op}, n, columns, columns,
             grad_y + part * part_elements);
  }
  with_storage(grad_z.type(), [&]<typename T>(T) {
    launch(exec, "barlow_twins_finish_backward", tile_grid(grad_z.stride, 2 * p.shards), finish_backward_kernel<T>,
           grad_y, part_elements, y.data, y.stride, inv_std, radial, shape_of(grad_z, p), grad_z.data.as<T>());
  });
}

}  // namespace simclr::barlow_twins
