// Limited-memory BFGS for smooth convex functions in double (Nocedal and Wright, "Numerical Optimization", algorithm
// 7.5), with Armijo backtracking. All sums have one fixed order: the same function gives the same bits.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace simclr {

struct LbfgsOptions {
  double tolerance = 1e-6;  // ends when the largest absolute value of the gradient is at most this
  int most_iterations = 2000;
};

struct LbfgsResult {
  int iterations = 0;
  bool converged = false;  // the gradient reached the tolerance
  double value = 0;        // of the objective at the end
  double gradient = 0;     // its largest absolute value
};

// Value and gradient at a point.
using Objective = std::function<double(std::span<const double> point, std::span<double> gradient)>;
// Called after each iteration.
using LbfgsProgress = std::function<void(const LbfgsResult& so_far)>;

// Moves `point` to the minimum. curvature [size of point]: an estimate > 0 of the Hessian's diagonal, used as a
// preconditioner (variables are scaled by its square root).
LbfgsResult minimize(const Objective& objective, std::span<const double> curvature, const LbfgsOptions& options,
                     std::vector<double>& point, const LbfgsProgress& progress = {});

}  // namespace simclr
