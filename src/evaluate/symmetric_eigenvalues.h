// Eigenvalues of a small symmetric matrix in double, without a library: Householder reflections to tridiagonal form,
// then QL with implicit shifts (Wilkinson and Reinsch, "Handbook for Automatic Computation II: Linear Algebra", tred1
// and imtql1).
#pragma once

#include <cstdint>
#include <vector>

namespace simclr {

// matrix [n, n], row-major; only its lower triangle is read. Ascending; errors are about 1e-15 n times the largest.
std::vector<double> symmetric_eigenvalues(std::vector<double> matrix, int64_t n);

}  // namespace simclr
