#include "src/report/features.h"

#include <algorithm>
#include <cmath>

namespace simclr {
namespace {

constexpr size_t kDirections = 8;
constexpr int kIterations = 40;

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Gram-Schmidt, twice for precision. A direction that vanishes becomes zero.
void orthonormalize(std::vector<Vector>& directions) {
  for (size_t i = 0; i < directions.size(); ++i) {
    const double before = std::sqrt(dot(directions[i], directions[i]));
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t j = 0; j < i; ++j) {
        const double along = dot(directions[i], directions[j]);
        for (size_t c = 0; c < directions[i].size(); ++c) directions[i][c] -= along * directions[j][c];
      }
    }
    const double length = std::sqrt(dot(directions[i], directions[i]));
    const double scale = length > 1e-12 * before && length > 0 ? 1 / length : 0;
    for (double& x : directions[i]) x *= scale;
  }
}

// The rows less their mean.
std::vector<Vector> centered(const ConstMatrix& features, const std::vector<int64_t>& rows) {
  const auto columns = static_cast<size_t>(features.cols);
  Vector mean(columns, 0);
  std::vector<Vector> centered(rows.size(), Vector(columns));
  for (size_t r = 0; r < rows.size(); ++r) {
    const float* row = features.row(rows[r]);
    for (size_t c = 0; c < columns; ++c) mean[c] += centered[r][c] = row[c];
  }
  for (double& x : mean) x /= static_cast<double>(rows.size());
  for (Vector& row : centered)
    for (size_t c = 0; c < columns; ++c) row[c] -= mean[c];
  return centered;
}

// One application of X^T X to all directions, X the rows.
void apply_covariance(const std::vector<Vector>& rows, std::vector<Vector>& directions) {
  std::vector<Vector> result(directions.size(), Vector(directions[0].size(), 0));
  for (const Vector& row : rows) {
    for (size_t k = 0; k < directions.size(); ++k) {
      const double along = dot(row, directions[k]);
      for (size_t c = 0; c < row.size(); ++c) result[k][c] += along * row[c];
    }
  }
  directions = std::move(result);
}

}  // namespace

std::vector<Neighbor> nearest_rows(const ConstMatrix& bank, const ConstMatrix& queries, int64_t query, int64_t count) {
  std::vector<Neighbor> all(bank.rows);
  const float* q = queries.row(query);
  for (int64_t r = 0; r < bank.rows; ++r) {
    const float* row = bank.row(r);
    double sum = 0;
    for (int64_t c = 0; c < bank.cols; ++c) sum += static_cast<double>(q[c]) * row[c];
    all[r] = {r, sum};
  }
  const auto end = all.begin() + std::min(count, bank.rows);
  std::partial_sort(all.begin(), end, all.end(), [](const Neighbor& a, const Neighbor& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.row < b.row;
  });
  return {all.begin(), end};
}

PlaneMap principal_plane(const ConstMatrix& features, const std::vector<int64_t>& rows, const Beat& beat) {
  PlaneMap map{.points = std::vector<std::array<double, 2>>(rows.size()), .explained = {}};
  const std::vector<Vector> x = centered(features, rows);
  double variance = 0;
  for (const Vector& row : x) variance += dot(row, row);
  if (!(variance > 1e-18)) return map;
  const auto columns = static_cast<size_t>(features.cols);
  std::vector<Vector> directions(std::min(kDirections, columns), Vector(columns));
  for (size_t k = 0; k < directions.size(); ++k)  // any start that is not orthogonal to what is sought
    for (size_t c = 0; c < columns; ++c) directions[k][c] = std::sin(static_cast<double>((k + 1) * (c + 1)));
  orthonormalize(directions);
  for (int i = 0; i < kIterations; ++i) {
    apply_covariance(x, directions);
    orthonormalize(directions);
    beat();
  }
  for (size_t axis = 0; axis < std::min<size_t>(2, directions.size()); ++axis) {
    Vector& direction = directions[axis];
    const auto larger = [](double a, double b) { return std::abs(a) < std::abs(b); };
    if (*std::max_element(direction.begin(), direction.end(), larger) < 0)
      for (double& v : direction) v = -v;
    for (size_t r = 0; r < rows.size(); ++r) {
      map.points[r][axis] = dot(x[r], direction);
      map.explained[axis] += map.points[r][axis] * map.points[r][axis] / variance;
    }
  }
  return map;
}

}  // namespace simclr
