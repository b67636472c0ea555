// The linear probe: multinomial logistic regression on frozen features, solved to convergence. The minimum of
//   f(W, b) = 1/N sum_i -log softmax(W x_i + b)[y_i] + 1/(2 C N) ||W||^2
// which is that of scikit-learn's LogisticRegression(C=C) (penalty l2, the bias free). The problem is strictly convex
// but for a constant added to all biases, so the answer is a property of features and labels and not of the way to it.
//
// Features are taken as the encoder gives them. Inside, they are centered (that moves the bias alone) and the variables
// scaled by the curvature at 0, which changes the path of the solver and not its end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "src/base/beat.h"
#include "src/comm/collectives.h"
#include "src/evaluate/lbfgs.h"

namespace simclr {

// Images with labels in [0, classes).
struct ProbeData {
  ConstMatrix features;             // [N, D], finite
  std::span<const int32_t> labels;  // [N]
};

struct ProbeSolution {
  std::vector<double> weights;  // [classes, D + 1]: W | b, for features as they are
  double c = 0;
  LbfgsResult solver;  // of f: value, iterations, largest absolute value of the gradient (centered)
};

struct ProbeScores {
  int64_t queries = 0, top1_correct = 0, top5_correct = 0;
  double loss = 0;                 // mean of -log softmax of the true class
  std::vector<int64_t> confusion;  // [classes, classes]: true class, predicted class

  double top1() const { return static_cast<double>(top1_correct) / static_cast<double>(queries); }
  double top5() const { return static_cast<double>(top5_correct) / static_cast<double>(queries); }
};

// Collective: every rank passes the same, computes its share of the products and gets the same bits, for every number
// of ranks and threads. start: weights to begin from (a solution for another C), or empty. beat: between products.
class LinearProbe {
 public:
  LinearProbe(const CpuExec& exec, Collectives& collectives, int64_t classes, Beat beat = no_beat)
      : exec_(exec), collectives_(collectives), classes_(classes), beat_(std::move(beat)) {}

  ProbeSolution solve(const ProbeData& data, double c, const LbfgsOptions& options,
                      const std::vector<double>& start = {}, const LbfgsProgress& progress = {});

  // Value and gradient of f at weights [classes, D + 1], features as they are.
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

// The C with the lowest loss on held-out labels, and what was tried on the way to it. The loss and not the accuracy: of
// ten held-out images the accuracy of most C is the same.
struct ChosenC {
  struct Try {
    double c = 0, loss = 0, top1 = 0;  // on the held-out images
  };
  double c = 0;
  std::vector<Try> tried;
  std::vector<double> weights;  // of that C, to start from
};

// C = 10^-4, 10^-3, ... 10^3 from the strongest regularization on, each from the one before; two in a row below the
// best end the search. Of equal accuracies the smaller C.
ChosenC choose_c(LinearProbe& probe, const ProbeData& fit, const ProbeData& held_out,
                 const std::function<LbfgsProgress(double c)>& progress);

}  // namespace simclr
