// CPU: products by oneDNN, one call per shard and block of 64 columns; sums over images and over [C, C] in double.
// Tasks are (shard, view) or blocks of columns, so that no sum is cut by the number of threads or of shards.
#include <algorithm>
#include <cmath>

#include "kernels/barlow_twins/barlow_twins_device.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/gemm.h"
#include "kernels/common/numbers.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"

namespace simclr::barlow_twins {
namespace {

int64_t blocks_of(const BarlowTwinsProblem& p) {
  return (p.columns + kBlock - 1) / kBlock;
}
int64_t columns_from(const BarlowTwinsProblem& p, int64_t first) {
  return std::min(kBlock, p.columns - first);
}

float* thread_floats(const CpuExec& exec, int thread, int64_t count) {
  SIMCLR_CHECK(bytes_of<float>(count) <= exec.thread_scratch_bytes,
               "op needs {} floats of a thread's scratch, {} bytes are there", count, exec.thread_scratch_bytes);
  return reinterpret_cast<float*>(exec.scratch_of(thread));
}

// out [2, C] = sum over this rank's rows of term(z, entry of [2, C]).
template <typename TermFn>
void sum_columns(const CpuExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, double* out, TermFn&& term) {
  const int64_t n = p.shard_images, columns = p.columns;
  double* parts = workspace_as<double>(exec, p.shards * 2 * columns);  // [shards, 2, C]
  with_element_type(z.type(), [&]<typename T>(T) {
    parallel_for(exec, p.shards * 2, [&](int64_t part, int) {
      double* sum = parts + part * columns;
      const int64_t view = part % 2 * columns;
      std::fill_n(sum, columns, 0.0);
      for (int64_t i = 0; i < n; ++i) {
        const T* row = z.row(part * n + i).as<T>();
        for (int64_t c = 0; c < columns; ++c) sum[c] += term(as_double(as_float(row[c])), view + c);
      }
    });
  });
  ordered_tree_sum<double>([&](int64_t s) { return parts + s * 2 * columns; }, p.shards, 0, 2 * columns);
  std::copy_n(parts, 2 * columns, out);
}

// Element j is added to lane j mod 8, the lanes in tree order.
double sum_of_squares(const float* row, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lane[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += as_double(row[j + l]) * as_double(row[j + l]);
  }
  for (int64_t l = 0; j + l < count; ++l) lane[l] += as_double(row[j + l]) * as_double(row[j + l]);
  ordered_tree_sum<double>([&](int64_t l) { return lane + l; }, kLanes, 0, 1);
  return lane[0];
}

}  // namespace

void sums(const CpuExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, double* sums) {
  sum_columns(exec, z, p, sums, [](double value, int64_t) { return value; });
}

void square_sums(const CpuExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                 double* squares) {
  const auto batch = as_double(p.batch);
  double* mean = squares;  // until the sums are there
  for (int64_t k = 0; k < 2 * p.columns; ++k) mean[k] = sums[k] / batch;
  sum_columns(exec, z, p, squares, [mean](double value, int64_t k) { return (value - mean[k]) * (value - mean[k]); });
}

void standardize(const CpuExec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                 const double* squares, const FloatMatrix& y, double* inv_std) {
  const int64_t n = p.shard_images;
  const auto batch = as_double(p.batch);
  double* means = workspace_as<double>(exec, 2 * p.columns);  // [2, C]
  for (int64_t k = 0; k < 2 * p.columns; ++k) {
    means[k] = sums[k] / batch;
    inv_std[k] = 1.0 / std::sqrt(squares[k] / batch + p.eps);
  }
  with_element_type(z.type(), [&]<typename T>(T) {
    parallel_for(exec, p.shards * 2, [&](int64_t part, int) {
      const double* mean = means + part % 2 * p.columns;
      const double* inverse = inv_std + part % 2 * p.columns;
      for (int64_t i = part * n; i < (part + 1) * n; ++i) {
        const T* from = z.row(i).as<T>();
        float* to = y.row(i);
        for (int64_t c = 0; c < p.columns; ++c) to[c] = to_float((as_double(as_float(from[c])) - mean[c]) * inverse[c]);
      }
    });
  });
}

void products(const CpuExec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p, float* products) {
  const int64_t n = p.shard_images, columns = p.columns, aligned = aligned_elements(kBlock, columns);
  parallel_for(exec, blocks_of(p), [&](int64_t block, int thread) {
    const int64_t first = block * kBlock, count = columns_from(p, first);
    float* result = products + first * columns;  // [count, C]
    float* waiting = thread_floats(exec, thread, waiting_sums(p.shards) * aligned);
    const auto matrix = [&](int64_t d) { return d == 0 ? result : waiting + (d - 1) * aligned; };
    sum_shards(
        p.shards,
        [&](int64_t shard, int64_t d) {  // y_1^T y_2
          const ConstFloatMatrix left{y.row(2 * shard * n) + first, n, count, y.stride};
          gemm(left, Op::kTranspose, y.slice((2 * shard + 1) * n, n), Op::kNone, {},
               {matrix(d), count, columns, columns});
        },
        [&](int64_t d) {
          float* __restrict sum = matrix(d);
          const float* __restrict other = matrix(d + 1);
          for (int64_t k = 0; k < count * columns; ++k) sum[k] += other[k];
        });
  });
}

void loss(const CpuExec& exec, const BarlowTwinsProblem& p, float* c, double* radial, double* loss) {
  const int64_t columns = p.columns;
  const double per_image = 1 / as_double(p.batch);
  const auto diagonal = [&](int64_t i) { return as_double(c[i * columns + i]) * per_image; };  // c_ii
  // 1/B sum of G_ij c_ij over a row or column with diagonal d, `squares` the sum of the others' (B c_ij)^2
  const auto radial_of = [&](double d, double squares) {
    return 2 * p.scale * per_image * (p.lambda * squares * per_image * per_image + (d - 1) * d);
  };

  // Columns first: the rows put G in the place of c.
  parallel_for(exec, blocks_of(p), [&](int64_t block, int) {
    const int64_t first = block * kBlock, count = columns_from(p, first);
    double squares[kBlock] = {};
    const auto add = [&](const float* row, int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) squares[k] += as_double(row[k]) * as_double(row[k]);
    };
    for (int64_t i = 0; i < columns; ++i) {
      const float* row = c + i * columns + first;
      const int64_t own = i >= first && i < first + count ? i - first : count;  // where row i meets the diagonal
      add(row, 0, own);
      add(row, own + 1, count);
    }
    for (int64_t k = 0; k < count; ++k) radial[columns + first + k] = radial_of(diagonal(first + k), squares[k]);
  });

  double* losses = workspace_as<double>(exec, columns);  // of each row
  parallel_for(exec, blocks_of(p), [&](int64_t block, int) {
    const int64_t first = block * kBlock;
    for (int64_t i = first; i < first + columns_from(p, first); ++i) {
      float* row = c + i * columns;
      const double d = diagonal(i), to_grad = 2 * p.scale * per_image * p.lambda * per_image;
      row[i] = 0;
      const double squares = sum_of_squares(row, columns);
      losses[i] = (d - 1) * (d - 1) + p.lambda * squares * per_image * per_image;
      radial[i] = radial_of(d, squares);
      for (int64_t j = 0; j < columns; ++j) row[j] = to_float(as_double(row[j]) * to_grad);
      row[i] = to_float(2 * p.scale * per_image * (d - 1));
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) sum += losses[i];
  *loss = p.scale * sum;
}

void backward(const CpuExec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p, const float* grad_c,
              const double* inv_std, const double* radial, const Matrix& grad_z) {
  const int64_t n = p.shard_images, columns = p.columns, blocks = blocks_of(p);
  with_element_type(grad_z.type(), [&]<typename T>(T) {
    parallel_for(exec, p.shards * 2 * blocks, [&](int64_t task, int thread) {
      const int64_t part = task / blocks, view = part % 2, first = task % blocks * kBlock;
      const int64_t count = columns_from(p, first);
      const ConstFloatMatrix other = y.slice((part ^ 1) * n, n);  // [n, C] of the other view
      const FloatMatrix grad_y{thread_floats(exec, thread, n * count), n, count, count};
      if (view == 0) {  // y_2 G^T
        gemm(other, Op::kNone, {grad_c + first * columns, count, columns, columns}, Op::kTranspose, {}, grad_y);
      } else {  // y_1 G
        gemm(other, Op::kNone, {grad_c + first, columns, count, columns}, Op::kNone, {}, grad_y);
      }
      const double* inverse = inv_std + view * columns + first;
      const double* along_y = radial + view * columns + first;
      for (int64_t i = 0; i < n; ++i) {
        const float* y_row = y.row(part * n + i) + first;
        const float* g_row = grad_y.row(i);
        T* row = grad_z.row(part * n + i).as<T>();
        for (int64_t k = 0; k < count; ++k)
          row[first + k] =
              element_of<T>(to_float(inverse[k] * (as_double(g_row[k]) - as_double(y_row[k]) * along_y[k])));
        if (first + count == columns) std::fill(row + columns, row + grad_z.stride, T{});
      }
    });
  });
}

}  // namespace simclr::barlow_twins
