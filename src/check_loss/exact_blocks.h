// Blocks of double arithmetic for exact_infonce.cpp, written so that the compiler vectorizes them. A row of a result
// depends on that row's operands alone, never on its place in a block or on the rows around it.
// Shares no code with the single-precision loss that it judges.
#pragma once

#include <cstdint>

namespace simclr::exact {

// Rows and columns of a block are multiples of these.
inline constexpr int64_t kRowStep = 4, kColumnStep = 16;

// out += a b: out [rows, columns], a [rows, depth], b [depth, columns], each with its stride. A sum runs over depth in
// ascending order, from what out holds.
struct Product {
  const double* a;
  int64_t a_stride;
  const double* b;
  int64_t b_stride;
  double* out;
  int64_t out_stride;
  int64_t rows, columns, depth;
};
void add_product(const Product& product);

// The largest of count numbers; no NaN may come. count is a multiple of 8, as below.
double largest(const double* x, int64_t count);

// sum of exp(x_j - top), all x_j <= top; -infinity counts 0. In eight sums, j mod 8, which are added as a tree.
double sum_of_exponentials(const double* x, double top, int64_t count);

// x_j = exp(x_j - first) + exp(x_j - second_j). What is below -700 counts 0.
void add_exponentials(double* x, double first, const double* second, int64_t count);

}  // namespace simclr::exact
