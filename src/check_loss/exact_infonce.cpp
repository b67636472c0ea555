// Rows in blocks of 128 against keys in blocks of 64, in ascending order; a block of rows is one task.
#include "src/check_loss/exact_infonce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/numbers.h"
#include "kernels/common/parallel.h"
#include "kernels/common/views.h"
#include "src/check_loss/exact_blocks.h"

namespace simclr {
namespace {

constexpr int64_t kRowBlock = 128, kKeyBlock = 64;
constexpr double kNormFloor = 1e-12;  // what training divides by at least
constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t blocks_of(int64_t count, int64_t block) {
  return (count + block - 1) / block;
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

double norm_of(const double* row, int64_t count) {
  double largest = 0;
  for (int64_t c = 0; c < count; ++c) largest = std::max(largest, std::abs(row[c]));
  if (largest == 0) return 0;
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += (row[c] / largest) * (row[c] / largest);
  return largest * std::sqrt(sum);
}

// log(1 + exp(x))
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

ExactInfoNce::ExactInfoNce(const ViewPair& views, ImageRange own, const LossSettings& settings, int threads)
    : own_(own),
      settings_(settings),
      threads_(threads),
      rows_(2 * views.images()),
      columns_(views.columns()),
      width_(round_up(columns_, exact::kColumnStep)),
      e_(static_cast<size_t>((rows_ + kRowBlock) * width_)),
      norms_(static_cast<size_t>(rows_)),
      positive_weights_(static_cast<size_t>(2 * own.count)) {
  parallel_for(CpuExec{.threads = threads_}, views.images(), [&](int64_t image, int) {
    for (int64_t view = 0; view < 2; ++view) {
      const int64_t r = 2 * image + view;
      double* e = e_.data() + r * width_;
      for (int64_t c = 0; c < columns_; ++c) e[c] = views.views[view].at(image, c);
      norms_[r] = norm_of(e, columns_);
      for (int64_t c = 0; c < columns_; ++c) e[c] /= std::max(norms_[r], kNormFloor);
    }
  });
}

// logits [rows, 64]: l_rj of rows from first_row on and keys from first_key on, -infinity where j is r itself, its
// positive, or no row at all. keys [C, 64] is scratch: the keys transposed.
void ExactInfoNce::find_logits(int64_t first_row, int64_t rows, int64_t first_key, double* logits, double* keys) const {
  for (int64_t j = 0; j < kKeyBlock; ++j) {
    for (int64_t c = 0; c < columns_; ++c) keys[c * kKeyBlock + j] = row(first_key + j)[c];
  }
  std::fill_n(logits, rows * kKeyBlock, 0.0);
  exact::add_product({.a = row(first_row),
                      .a_stride = width_,
                      .b = keys,
                      .b_stride = kKeyBlock,
                      .out = logits,
                      .out_stride = kKeyBlock,
                      .rows = rows,
                      .columns = kKeyBlock,
                      .depth = columns_});
  for (int64_t k = 0; k < rows * kKeyBlock; ++k) logits[k] /= settings_.temperature;
  for (int64_t i = 0; i < rows; ++i) {
    double* of_row = logits + i * kKeyBlock;
    for (const int64_t j : {first_row + i, (first_row + i) ^ 1}) {
      if (j >= first_key && j < first_key + kKeyBlock) of_row[j - first_key] = -kInfinity;
    }
    for (int64_t j = std::max(rows_ - first_key, int64_t{0}); j < kKeyBlock; ++j) of_row[j] = -kInfinity;
  }
}

void ExactInfoNce::forward(std::span<double> losses, std::span<double> log_denominators) {
  parallel_for(CpuExec{.threads = threads_}, blocks_of(2 * own_.count, kRowBlock), [&](int64_t block, int) {
    const int64_t first = own_begin() + block * kRowBlock, count = std::min(kRowBlock, own_end() - first);
    const int64_t padded = round_up(count, exact::kRowStep);
    std::vector<double> logits(padded * kKeyBlock), keys(static_cast<size_t>(columns_ * kKeyBlock));
    std::vector<double> tops(count, -kInfinity), sums(static_cast<size_t>(count));
    for (int64_t key = 0; key < rows_; key += kKeyBlock) {
      find_logits(first, padded, key, logits.data(), keys.data());
      for (int64_t i = 0; i < count; ++i) {
        const double* l = &logits[i * kKeyBlock];
        const double top = std::max(tops[i], exact::largest(l, kKeyBlock));
        if (top == -kInfinity) continue;  // no negative yet
        sums[i] = sums[i] * std::exp(tops[i] - top) + exact::sum_of_exponentials(l, top, kKeyBlock);
        tops[i] = top;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t r = first + i, at = r - own_begin();
      const double positive = (dot(row(r), row(r ^ 1), columns_) - settings_.margin) / settings_.temperature;
      const double gap = tops[i] + std::log(sums[i]) - positive;  // logN_r - l_r
      losses[at] = settings_.decoupled ? gap : softplus(gap);
      log_denominators[at] = positive + losses[at];
      positive_weights_[at] = settings_.decoupled ? 1 : 1 / (1 + std::exp(-gap));
    }
  });
}

void ExactInfoNce::backward(std::span<const double> log_denominators, std::span<double> grad_z) {
  std::vector<double> of_keys(rows_ + kKeyBlock);  // d_j, padded
  std::copy(log_denominators.begin(), log_denominators.end(), of_keys.begin());
  parallel_for(CpuExec{.threads = threads_}, blocks_of(2 * own_.count, kRowBlock), [&](int64_t block, int) {
    const int64_t first = own_begin() + block * kRowBlock, count = std::min(kRowBlock, own_end() - first);
    const int64_t padded = round_up(count, exact::kRowStep);
    std::vector<double> weights(padded * kKeyBlock), keys(static_cast<size_t>(columns_ * kKeyBlock));
    std::vector<double> pulled(padded * width_);  // sum_j (p_rj + p_jr) e_j
    for (int64_t key = 0; key < rows_; key += kKeyBlock) {
      find_logits(first, padded, key, weights.data(), keys.data());
      for (int64_t i = 0; i < padded; ++i)
        exact::add_exponentials(&weights[i * kKeyBlock], of_keys[std::min(first + i, rows_)], &of_keys[key], kKeyBlock);
      exact::add_product({.a = weights.data(),
                          .a_stride = kKeyBlock,
                          .b = row(key),
                          .b_stride = width_,
                          .out = pulled.data(),
                          .out_stride = width_,
                          .rows = padded,
                          .columns = width_,
                          .depth = kKeyBlock});
    }
    for (int64_t i = 0; i < count; ++i)
      finish_gradient(first + i, &pulled[i * width_], &grad_z[(first + i - own_begin()) * columns_]);
  });
}

void ExactInfoNce::finish_gradient(int64_t r, const double* pulled, double* grad_z) const {
  const int64_t at = r - own_begin();
  const double* e = row(r);
  const double* e_positive = row(r ^ 1);
  const double push = positive_weights_[at] + positive_weights_[at ^ 1];
  const double scale = 1 / (as_double(rows_) * settings_.temperature);
  for (int64_t c = 0; c < columns_; ++c) grad_z[c] = scale * (pulled[c] - push * e_positive[c]);  // dL/de
  if (norms_[r] <= kNormFloor) {
    std::fill_n(grad_z, columns_, 0.0);
    return;
  }
  const double radial = dot(e, grad_z, columns_);
  for (int64_t c = 0; c < columns_; ++c) grad_z[c] = (grad_z[c] - e[c] * radial) / norms_[r];
}

}  // namespace simclr
