// Every rank computes a run of rows of the logits and a run of columns of the gradient. The results are gathered, never
// summed across ranks, so that no sum depends on the number of ranks.
#include "src/evaluate/linear_probe.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/error.h"
#include "src/evaluate/linear_products.h"

namespace simclr {
namespace {

// The consecutive part of `count` items that a rank computes, at most `share`.
struct Part {
  int64_t share, first, count;
};

Part part_of(int64_t count, const Collectives& ranks) {
  const int64_t share = (count + ranks.size() - 1) / ranks.size();
  const int64_t first = std::min<int64_t>(ranks.rank() * share, count);
  return {share, first, std::min(share, count - first)};
}

// logits [classes] become softmax - onehot; returns -log softmax[label].
double to_residuals(std::span<double> logits, int32_t label) {
  const double top = *std::max_element(logits.begin(), logits.end());
  const double own = logits[label];
  double sum = 0;
  for (double& x : logits) {
    x = std::exp(x - top);
    sum += x;
  }
  for (double& x : logits) x /= sum;
  logits[label] -= 1;
  return std::log(sum) + top - own;
}

struct ColumnMoments {
  std::vector<double> mean, variance;  // [D]
};

ColumnMoments moments_of(const ConstFloatMatrix& x) {
  ColumnMoments m{std::vector<double>(x.cols), std::vector<double>(x.cols)};
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t d = 0; d < x.cols; ++d) m.mean[d] += as_double(x.row(i)[d]);
  for (double& mean : m.mean) mean /= as_double(x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (size_t d = 0; d < m.mean.size(); ++d) {
      const double off = as_double(x.row(i)[d]) - m.mean[d];
      m.variance[d] += off * off;
    }
  }
  for (double& variance : m.variance) variance /= as_double(x.rows);
  return m;
}

// b += sign * W . mean, class by class: sign -1 converts weights for centered features to uncentered ones, +1 back.
void move_bias(std::vector<double>& weights, const std::vector<double>& mean, double sign) {
  const size_t width = mean.size() + 1;
  for (size_t k = 0; k < weights.size() / width; ++k) {
    double sum = 0;
    for (size_t d = 0; d < mean.size(); ++d) sum += weights[k * width + d] * mean[d];
    weights[k * width + mean.size()] += sign * sum;
  }
}

}  // namespace

void LinearProbe::check(const ProbeData& data) const {
  SIMCLR_CHECK(data.features.rows >= 1 && std::ssize(data.labels) == data.features.rows, "{} rows, {} labels",
               data.features.rows, data.labels.size());
  SIMCLR_CHECK(std::all_of(data.labels.begin(), data.labels.end(), [&](int32_t y) { return y >= 0 && y < classes_; }),
               "a label outside [0, {})", classes_);
}

double LinearProbe::residuals(const ProbeData& data, std::span<const double> weights, std::vector<double>& all) {
  const int64_t rows = data.features.rows;
  const Part part = part_of(rows, collectives_);
  const int64_t width = classes_ + 1;  // residuals and the loss
  std::vector<double> logits(part.count * classes_);
  if (part.count > 0) linear_logits(exec_, data.features.slice(part.first, part.count), weights, logits);
  std::vector<double> own(part.share * width);
  for (int64_t i = 0; i < part.count; ++i) {
    double* row = own.data() + i * width;
    std::copy_n(logits.data() + i * classes_, classes_, row);
    row[classes_] = to_residuals(std::span(row, classes_), data.labels[part.first + i]);
  }
  beat_();
  std::vector<double> gathered(own.size() * collectives_.size());
  collectives_.all_gather(std::span<const double>(own), std::span(gathered));
  all.resize(rows * classes_);
  double loss = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const double* row = gathered.data() + i * width;
    std::copy_n(row, classes_, all.data() + i * classes_);
    loss += row[classes_];
  }
  return loss;
}

void LinearProbe::products(const ProbeData& data, const std::vector<double>& residuals, std::vector<double>& all) {
  const int64_t columns = data.features.cols;
  const Part part = part_of(columns, collectives_);
  std::vector<double> product(classes_ * part.count), own(classes_ * part.share);
  if (part.count > 0) linear_gradient(exec_, data.features, residuals, part.first, part.count, product);
  for (int64_t k = 0; k < classes_; ++k)
    std::copy_n(product.data() + k * part.count, part.count, own.data() + k * part.share);
  beat_();
  std::vector<double> gathered(own.size() * collectives_.size());  // [W, classes, share]
  collectives_.all_gather(std::span<const double>(own), std::span(gathered));
  all.resize(classes_ * columns);
  for (int64_t k = 0; k < classes_; ++k) {
    for (int64_t d = 0; d < columns; ++d)
      all[k * columns + d] = gathered[(d / part.share * classes_ + k) * part.share + d % part.share];
  }
}

double LinearProbe::objective(const ProbeData& data, double c, std::span<const double> weights,
                              std::span<double> gradient) {
  check(data);
  const double rows = as_double(data.features.rows);
  const int64_t columns = data.features.cols, width = columns + 1;
  SIMCLR_CHECK(std::ssize(weights) == classes_ * width && gradient.size() == weights.size() && c > 0,
               "{} weights, {} gradients, C = {}", weights.size(), gradient.size(), c);
  std::vector<double> off, product;
  const double loss = residuals(data, weights, off);
  products(data, off, product);
  const double lambda = 1 / (c * rows);
  double square = 0;
  for (int64_t k = 0; k < classes_; ++k) {
    for (int64_t d = 0; d < columns; ++d) {
      const double w = weights[k * width + d];
      square += w * w;
      gradient[k * width + d] = product[k * columns + d] / rows + lambda * w;
    }
    double sum = 0;
    for (int64_t i = 0; i < data.features.rows; ++i) sum += off[i * classes_ + k];
    gradient[k * width + columns] = sum / rows;
  }
  return loss / rows + lambda / 2 * square;
}

ProbeSolution LinearProbe::solve(const ProbeData& data, double c, const LbfgsOptions& options,
                                 const std::vector<double>& start, const LbfgsProgress& progress) {
  check(data);
  const int64_t columns = data.features.cols, width = columns + 1;
  const ColumnMoments moments = moments_of(data.features);
  // The Hessian's diagonal at 0: softmax's p (1 - p) with p = 1 / classes times the feature's variance.
  const double p = 1 / as_double(classes_), lambda = 1 / (c * as_double(data.features.rows));
  std::vector<double> curvature(classes_ * width);
  for (int64_t k = 0; k < classes_; ++k) {
    for (int64_t d = 0; d < columns; ++d) curvature[k * width + d] = p * (1 - p) * moments.variance[d] + lambda;
    curvature[k * width + columns] = std::max(p * (1 - p), 1e-3);
  }
  ProbeSolution solution{.weights = start, .c = c, .solver = {}};
  if (start.empty()) solution.weights.resize(curvature.size());
  SIMCLR_CHECK(solution.weights.size() == curvature.size(), "{} weights to start from, {} expected", start.size(),
               curvature.size());
  move_bias(solution.weights, moments.mean, 1);
  std::vector<double> uncentered;
  solution.solver = minimize(
      [&](std::span<const double> point, std::span<double> gradient) {
        uncentered.assign(point.begin(), point.end());
        move_bias(uncentered, moments.mean, -1);
        const double value = objective(data, c, uncentered, gradient);
        for (int64_t k = 0; k < classes_; ++k)  // d b / d w = -mean
          for (int64_t d = 0; d < columns; ++d)
            gradient[k * width + d] -= gradient[k * width + columns] * moments.mean[d];
        return value;
      },
      curvature, options, solution.weights, progress);
  move_bias(solution.weights, moments.mean, -1);
  return solution;
}

ProbeScores LinearProbe::score(const ProbeSolution& solution, const ProbeData& queries) {
  check(queries);
  ProbeScores scores{.queries = queries.features.rows, .confusion = std::vector<int64_t>(classes_ * classes_)};
  std::vector<double> logits(queries.features.rows * classes_);
  linear_logits(exec_, queries.features, solution.weights, logits);
  for (int64_t i = 0; i < scores.queries; ++i) {
    const double* row = logits.data() + i * classes_;
    const int64_t truth = queries.labels[i], predicted = std::max_element(row, row + classes_) - row;
    int64_t before = 0;  // classes ranked before the true one
    for (int64_t k = 0; k < classes_; ++k) before += row[k] > row[truth] || (row[k] == row[truth] && k < truth) ? 1 : 0;
    scores.top1_correct += before == 0 ? 1 : 0;
    scores.top5_correct += before < 5 ? 1 : 0;
    ++scores.confusion[truth * classes_ + predicted];
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += std::exp(row[k] - row[predicted]);
    scores.loss += std::log(sum) + row[predicted] - row[truth];
  }
  scores.loss /= as_double(scores.queries);
  return scores;
}

ChosenC choose_c(LinearProbe& probe, const ProbeData& fit, const ProbeData& held_out,
                 const std::function<LbfgsProgress(double c)>& progress) {
  constexpr LbfgsOptions kGoodEnough = {.tolerance = 1e-4, .most_iterations = 500};
  ChosenC chosen;
  std::vector<double> start;
  double best = INFINITY;
  int above = 0;
  for (const double c : {1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0}) {
    ProbeSolution solution = probe.solve(fit, c, kGoodEnough, start, progress(c));
    const ProbeScores scores = probe.score(solution, held_out);
    chosen.tried.push_back({c, scores.loss, scores.top1()});
    start = solution.weights;
    above = scores.loss < best ? 0 : above + 1;
    if (scores.loss < best) {
      best = scores.loss;
      chosen.c = c;
      chosen.weights = std::move(solution.weights);
    }
    if (above == 2) break;
  }
  return chosen;
}

}  // namespace simclr
