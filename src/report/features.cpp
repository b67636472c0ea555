#include "src/report/features.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include "kernels/common/numbers.h"

namespace simclr {
namespace {

constexpr int64_t kDirections = 8;
constexpr int kIterations = 40;

// An orthonormal basis of the columns of v.
Eigen::MatrixXd orthonormal(const Eigen::MatrixXd& v) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(v);
  return qr.householderQ() * Eigen::MatrixXd::Identity(v.rows(), v.cols());
}

// The given rows less their mean, [rows, cols].
Eigen::MatrixXd centered(const ConstFloatMatrix& features, const std::vector<int64_t>& rows) {
  Eigen::MatrixXd x(rows.size(), features.cols);
  for (int64_t r = 0; r < x.rows(); ++r)
    x.row(r) = Eigen::Map<const Eigen::RowVectorXf>(features.row(rows[r]), features.cols).cast<double>();
  return x.rowwise() - x.colwise().mean().eval();
}

}  // namespace

std::vector<Neighbor> nearest_rows(const ConstFloatMatrix& bank, const ConstFloatMatrix& queries, int64_t query,
                                   int64_t count) {
  std::vector<Neighbor> all(bank.rows);
  const float* q = queries.row(query);
  for (int64_t r = 0; r < bank.rows; ++r) {
    const float* row = bank.row(r);
    double sum = 0;
    for (int64_t c = 0; c < bank.cols; ++c) sum += as_double(q[c]) * row[c];
    all[r] = {r, sum};
  }
  const auto end = all.begin() + std::min(count, bank.rows);
  std::partial_sort(all.begin(), end, all.end(), [](const Neighbor& a, const Neighbor& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.row < b.row;
  });
  return {all.begin(), end};
}

PlaneMap principal_plane(const ConstFloatMatrix& features, const std::vector<int64_t>& rows, const Beat& beat) {
  PlaneMap map{.points = std::vector<std::array<double, 2>>(rows.size()), .explained = {}};
  const Eigen::MatrixXd x = centered(features, rows);
  const double variance = x.squaredNorm();
  if (!(variance > 1e-18)) return map;
  const int64_t directions = std::min({kDirections, features.cols, x.rows()});
  Eigen::MatrixXd basis(features.cols, directions);
  for (int64_t k = 0; k < directions; ++k)  // a fixed start that is not orthogonal to the principal directions
    for (int64_t c = 0; c < features.cols; ++c) basis(c, k) = std::sin(as_double((k + 1) * (c + 1)));
  basis = orthonormal(basis);
  for (int i = 0; i < kIterations; ++i) {
    basis = orthonormal(x.transpose() * (x * basis));
    beat();
  }
  const Eigen::MatrixXd projected = x * basis;                                                   // [rows, directions]
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> ritz(projected.transpose() * projected);  // ascending
  for (int64_t axis = 0; axis < std::min<int64_t>(2, directions); ++axis) {
    const Eigen::VectorXd weights = ritz.eigenvectors().col(directions - 1 - axis);
    const Eigen::VectorXd direction = basis * weights;
    Eigen::Index largest = 0;
    direction.cwiseAbs().maxCoeff(&largest);
    const Eigen::VectorXd along = projected * (direction[largest] < 0 ? -weights : weights);
    for (int64_t r = 0; r < along.size(); ++r) map.points[r][axis] = along[r];
    map.explained[axis] = along.squaredNorm() / variance;
  }
  return map;
}

}  // namespace simclr
