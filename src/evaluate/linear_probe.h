// The linear probe: multinomial logistic regression on frozen features, solved to convergence. The minimum of
//   f(W, b) = 1/N sum_i -log softmax(W x_i + b)[y_i] + 1/(2 C N) ||W||^2
// which is that of scikit-learn's LogisticRegression(C=C) (penalty l2, the bias free). The problem is strictly convex
// except for a constant added to all biases, so the solution depends on features and labels, not on the solver.
//
// Features are used as the encoder returns them. Internally they are centered (which moves the bias only) and variables
// are scaled by the curvature at 0; both change the solver's path, not its result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/exec.h"
#include "kernels/common/numbers.h"
#include "kernels/common/views.h"
#include "src/base/beat.h"
#include "src/comm/collectives.h"
#include "src/evaluate/lbfgs.h"

namespace simclr {

// Images with labels in [0, classes).
struct ProbeData {
  ConstFloatMatrix features;        // [N, D], finite
  std::span<const int32_t> labels;  // [N]
};

struct ProbeSolution {
  std::vector<double> weights;  // [classes, D + 1]: W | b, for uncentered features
  double c = 0;
  LbfgsResult solver;  // of f: value, iterations, largest absolute value of the gradient (centered)
};

struct ProbeScores {
  int64_t queries = 0, top1_correct = 0, top5_correct = 0;
  double loss = 0;                 // mean of -log softmax of the true class
  std::vector<int64_t> confusion;  // [classes, classes]: true class, predicted class

  double top1() const { return as_double(top1_correct) / as_double(queries); }
  double top5() const { return as_double(top5_correct) / as_double(queries); }
};

// Collective: every rank passes the same arguments, computes its share of the products and returns the same bits, for
// any number of ranks and threads. start: initial weights (a solution for another C), or empty. beat: between products.
class LinearProbe {
 public:
  LinearProbe(const CpuExec& exec, Collectives& collectives, int64_t classes, Beat beat = no_beat)
      : exec_(exec), collectives_(collectives), classes_(classes), beat_(std::move(beat)) {}

  ProbeSolution solve(const ProbeData& data, double c, const LbfgsOptions& options,
                      const std::vector<double>& start = {}, const LbfgsProgress& progress = {});

  // Value and gradient of f at weights [classes, D + 1], for uncentered features.
  double objective(const ProbeData& data, double c, std::span<const double> weights, std::span<double> gradient);

  // The class of the largest logit; of equal ones the lower class.
  ProbeScores score(const ProbeSolution& solution, const ProbeData& queries);

 private:
  void check(const ProbeData& data) const;
  // Residuals p - onehot of all rows, [N, classes] on every rank; returns the sum of the losses.
  double residuals(const ProbeData& data, std::span<const double> weights, std::vector<double>& all);
  // residuals^T features, [classes, D] on every rank.
  void products(const ProbeData& data, const std::vector<double>& residuals, std::vector<double>& all);

  const CpuExec exec_;
  Collectives& collectives_;
  const int64_t classes_;
  const Beat beat_;
};

// The C with the lowest loss on held-out labels, and all values tried. The loss decides, not the accuracy: on ten
// held-out images most C have the same accuracy.
struct ChosenC {
  struct Try {
    double c = 0, loss = 0, top1 = 0;  // on the held-out images
  };
  double c = 0;
  std::vector<Try> tried;
  std::vector<double> weights;  // the solution for that C, to start from
};

// Tries C = 10^-4, 10^-3, ... 10^3, each started from the solution before; two in a row that are not better than the
// best end the search. Of equal losses the smaller C.
ChosenC choose_c(LinearProbe& probe, const ProbeData& fit, const ProbeData& held_out,
                 const std::function<LbfgsProgress(double c)>& progress);

}  // namespace simclr
