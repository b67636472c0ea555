#include "src/evaluate/embedding_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/parallel.h"
#include "src/evaluate/symmetric_eigenvalues.h"

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

// x [rows, cols] times its transpose, lower triangle.
std::vector<double> gram(const CpuExec& exec, const std::vector<double>& x, int64_t rows, int64_t cols,
                         const Beat& beat) {
  std::vector<double> products(rows * rows);
  parallel_for(exec, rows, [&](int64_t i, int thread) {
    for (int64_t j = 0; j <= i; ++j) products[i * rows + j] = dot(x.data() + i * cols, x.data() + j * cols, cols);
    if (thread == 0) beat();  // the calling thread
  });
  return products;
}

double effective_rank(const CpuExec& exec, const std::vector<double>& x, int64_t rows, int64_t cols, const Beat& beat) {
  // The singular values are the roots of the eigenvalues of x^T x or x x^T, whichever is smaller.
  std::vector<double> eigenvalues;
  if (rows <= cols) {
    eigenvalues = symmetric_eigenvalues(gram(exec, x, rows, cols, beat), rows);
  } else {
    std::vector<double> transposed(x.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < cols; ++k) transposed[k * rows + i] = x[i * cols + k];
    eigenvalues = symmetric_eigenvalues(gram(exec, transposed, cols, rows, beat), cols);
  }
  // What is below the rounding of the largest is 0: its root would look like something.
  const double nothing = 1e-13 * eigenvalues.back();
  double sum = 0, entropy = 0;
  for (double& value : eigenvalues) {
    value = value > nothing ? std::sqrt(value) : 0;
    sum += value;
  }
  for (const double s : eigenvalues)
    if (s > 0) entropy -= s / sum * std::log(s / sum);
  return std::exp(entropy);
}

}  // namespace

EmbeddingStatistics measure_embeddings(const CpuExec& exec, const ConstMatrix& embeddings, const Beat& beat) {
  const int64_t rows = embeddings.rows, cols = embeddings.cols, images = rows / 2;
  SIMCLR_CHECK(rows % 2 == 0 && images >= 2 && cols >= 1, "embeddings [{}, {}]", rows, cols);
  std::vector<double> x(rows * cols);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(embeddings.row(i), cols, x.data() + i * cols);

  EmbeddingStatistics result;
  for (int64_t i = 0; i < images; ++i)
    result.alignment += square_distance(x.data() + 2 * i * cols, x.data() + (2 * i + 1) * cols, cols);
  result.alignment /= static_cast<double>(images);

  std::vector<double> potential(rows);  // of a row with the later images, same view
  parallel_for(exec, rows, [&](int64_t i, int thread) {
    double sum = 0;
    for (int64_t j = i + 2; j < rows; j += 2)
      sum += std::exp(-2 * square_distance(x.data() + i * cols, x.data() + j * cols, cols));
    potential[i] = sum;
    if (thread == 0) beat();
  });
  double sum = 0;
  for (const double p : potential) sum += p;
  result.uniformity = std::log(sum / static_cast<double>(images * (images - 1)));
  result.effective_rank = effective_rank(exec, x, rows, cols, beat);
  return result;
}

}  // namespace simclr
