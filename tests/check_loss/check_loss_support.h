// Runs a loss of this folder on several ranges of images one after the other, as ranks would, and puts the parts
// together.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "src/check_loss/exact_infonce.h"
#include "src/check_loss/training_infonce.h"
#include "tests/data/npy_support.h"

namespace simclr::test {

template <typename T>
struct WholeLoss {
  std::vector<double> losses;  // [2N], rows [view 1 ; view 2]
  std::vector<T> grad_z;       // [2N, C], the same

  double loss() const {
    double sum = 0;
    for (const double x : losses) sum += x;
    return sum / static_cast<double>(losses.size());
  }
};

template <typename Loss>
WholeLoss<typename Loss::Element> run_parts(const ViewPair& views, const LossSettings& settings, int ranks = 1,
                                            int threads = 1) {
  using T = typename Loss::Element;
  const int64_t images = views.images(), columns = views.columns(), rows = 2 * images;
  std::vector<double> losses(rows, NAN), log_denominators(rows, NAN);  // image order
  std::vector<T> grad(rows * columns, static_cast<T>(NAN));
  std::vector<std::unique_ptr<Loss>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const ImageRange own = images_of_rank(images, rank, ranks);
    parts.push_back(std::make_unique<Loss>(views, own, settings, threads));
    parts.back()->forward(std::span(losses).subspan(2 * own.first, 2 * own.count),
                          std::span(log_denominators).subspan(2 * own.first, 2 * own.count));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const ImageRange own = images_of_rank(images, rank, ranks);
    parts[rank]->backward(log_denominators, std::span(grad).subspan(2 * own.first * columns, 2 * own.count * columns));
  }
  WholeLoss<T> out{.losses = losses, .grad_z = grad};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_image_order = 2 * (row % images) + row / images;
    out.losses[row] = losses[in_image_order];
    std::copy_n(&grad[in_image_order * columns], columns, &out.grad_z[row * columns]);
  }
  return out;
}

// z [2N, C], rows [view 1 of 0..N-1 ; view 2 of 0..N-1].
template <typename T>
ViewPair view_pair(const std::vector<T>& z, int64_t columns) {
  const auto half = static_cast<std::ptrdiff_t>(z.size() / 2);
  return {.paths = {"z1.npy", "z2.npy"},
          .views = {npy_matrix(std::vector<T>(z.begin(), z.begin() + half), columns),
                    npy_matrix(std::vector<T>(z.begin() + half, z.end()), columns)}};
}

}  // namespace simclr::test
