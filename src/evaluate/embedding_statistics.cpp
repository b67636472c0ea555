#include "src/evaluate/embedding_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <Eigen/Eigenvalues>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"

namespace simclr {
namespace {

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

double square_distance(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

// x [rows, cols] times its transpose; only the lower triangle is set. Every element is one dot product, so it does not
// depend on the number of threads.
Eigen::MatrixXd gram(const CpuExec& exec, const std::vector<double>& x, int64_t rows, int64_t cols, const Beat& beat) {
  Eigen::MatrixXd products = Eigen::MatrixXd::Zero(rows, rows);
  parallel_for(exec, rows, [&](int64_t i, int thread) {
    for (int64_t j = 0; j <= i; ++j) products(i, j) = dot(x.data() + i * cols, x.data() + j * cols, cols);
    if (thread == 0) beat();  // the calling thread
  });
  return products;
}

// The squares of the singular values of x [rows, cols], ascending: the eigenvalues of x^T x or x x^T, whichever is
// smaller.
Eigen::ArrayXd squared_singular_values(const CpuExec& exec, const std::vector<double>& x, int64_t rows, int64_t cols,
                                       const Beat& beat) {
  Eigen::MatrixXd products;
  if (rows <= cols) {
    products = gram(exec, x, rows, cols, beat);
  } else {
    std::vector<double> transposed(x.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < cols; ++k) transposed[k * rows + i] = x[i * cols + k];
    products = gram(exec, transposed, cols, rows, beat);
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(products, Eigen::EigenvaluesOnly);
  SIMCLR_CHECK(solver.info() == Eigen::Success, "no eigenvalues of [{}, {}]", products.rows(), products.cols());
  return solver.eigenvalues();
}

double effective_rank(const Eigen::ArrayXd& squares) {
  // Values below the rounding error of the largest are 0: their roots would count.
  const double rounding = 1e-13 * squares[squares.size() - 1];
  const Eigen::ArrayXd singular = (squares > rounding).select(squares.max(0).sqrt(), 0);
  const double sum = singular.sum();
  double entropy = 0;
  for (const double s : singular)
    if (s > 0) entropy -= s / sum * std::log(s / sum);
  return std::exp(entropy);
}

}  // namespace

EmbeddingStatistics measure_embeddings(const CpuExec& exec, const ConstFloatMatrix& embeddings, const Beat& beat) {
  const int64_t rows = embeddings.rows, cols = embeddings.cols, images = rows / 2;
  SIMCLR_CHECK(rows % 2 == 0 && images >= 2 && cols >= 1, "embeddings [{}, {}]", rows, cols);
  std::vector<double> x(rows * cols);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(embeddings.row(i), cols, x.data() + i * cols);

  EmbeddingStatistics result;
  for (int64_t i = 0; i < images; ++i)
    result.alignment += square_distance(x.data() + 2 * i * cols, x.data() + (2 * i + 1) * cols, cols);
  result.alignment /= as_double(images);

  std::vector<double> potential(rows);  // of a row with the same view of all later images
  parallel_for(exec, rows, [&](int64_t i, int thread) {
    double sum = 0;
    for (int64_t j = i + 2; j < rows; j += 2)
      sum += std::exp(-2 * square_distance(x.data() + i * cols, x.data() + j * cols, cols));
    potential[i] = sum;
    if (thread == 0) beat();
  });
  double sum = 0;
  for (const double p : potential) sum += p;
  result.uniformity = std::log(sum / as_double(images * (images - 1)));
  result.effective_rank = effective_rank(squared_singular_values(exec, x, rows, cols, beat));
  return result;
}

}  // namespace simclr
