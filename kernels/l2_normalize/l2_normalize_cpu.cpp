// CPU: one row after the other, parallel over blocks of rows. Two sums of C terms per row; the loss around it costs
// 2B times as much, so this is written to be read.
#include <algorithm>
#include <cmath>

#include "kernels/common/bfloat16.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "kernels/l2_normalize/l2_normalize.h"

namespace simclr::detail {
namespace {

constexpr int64_t kRowsPerTask = 64;

template <typename RowFn>
void for_each_row(const CpuExec& exec, int64_t rows, RowFn&& row_fn) {
  const int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(exec, tasks, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (int64_t i = task * kRowsPerTask; i < end; ++i) row_fn(i);
  });
}

// The product of two floats is exact in double.
template <typename T>
double dot(const T* a, const T* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += as_double(as_float(a[c])) * as_double(as_float(b[c]));
  return sum;
}

}  // namespace

void l2_normalize_forward(const CpuExec& exec, const ConstMatrix& z, const FloatMatrix& e, std::span<double> norms) {
  with_element_type(z.type(), [&]<typename T>(T) {
    for_each_row(exec, z.rows, [&](int64_t i) {
      const T* z_row = z.row(i).as<T>();  // [C]
      float* e_row = e.row(i);            // [C]
      const double norm = std::sqrt(dot(z_row, z_row, z.cols));
      norms[i] = norm;
      const double divisor = norm <= kNormFloor ? kNormFloor : norm;  // a NaN norm stays NaN
      for (int64_t c = 0; c < z.cols; ++c) e_row[c] = to_float(as_float(z_row[c]) / divisor);
      std::fill(e_row + z.cols, e_row + e.stride, 0.0F);
    });
  });
}

void l2_normalize_backward(const CpuExec& exec, const ConstFloatMatrix& e, std::span<const double> norms,
                           const ConstFloatMatrix& grad_e, const Matrix& grad_z) {
  with_element_type(grad_z.type(), [&]<typename T>(T) {
    for_each_row(exec, e.rows, [&](int64_t i) {
      const float* e_row = e.row(i);       // [C]
      const float* g_row = grad_e.row(i);  // [C]
      T* out = grad_z.row(i).as<T>();      // [C]
      const double norm = norms[i];
      if (norm <= kNormFloor) {
        std::fill(out, out + grad_z.stride, T{});
        return;
      }
      // forward: e = z / norm;  de/dz = (I - e e^T) / norm
      const double radial = dot(e_row, g_row, e.cols);
      for (int64_t c = 0; c < e.cols; ++c) out[c] = element_of<T>(to_float((g_row[c] - e_row[c] * radial) / norm));
      std::fill(out + e.cols, out + grad_z.stride, T{});
    });
  });
}

}  // namespace simclr::detail
