// Raw-pixel nearest neighbors by brute force.
#include "tests/data/pixel_knn.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/common/parallel.h"

namespace simclr::test {

// similarity [queries, bank] = dot products of rows of `width` values, a multiple of 64. The bank goes by in blocks
// that stay in the cache.
SIMCLR_MULTIVERSION
void similarities(const std::vector<float>& queries, const std::vector<float>& bank, size_t width,
                  std::vector<float>& similarity) {
  constexpr size_t kBlock = 32;
  const size_t query_count = queries.size() / width, bank_count = bank.size() / width;
  for (size_t begin = 0; begin < bank_count; begin += kBlock) {
    for (size_t q = 0; q < query_count; ++q) {
      for (size_t i = begin; i < std::min(begin + kBlock, bank_count); ++i) {
        const float* __restrict x = queries.data() + q * width;
        const float* __restrict y = bank.data() + i * width;
        float lane[64] = {};
        for (size_t j = 0; j < width; j += 64) {
          for (size_t l = 0; l < 64; ++l) lane[l] += x[j + l] * y[j + l];
        }
        float sum = 0;
        for (const float v : lane) sum += v;
        similarity[q * bank_count + i] = sum;
      }
    }
  }
}

namespace {

struct PixelStatistics {
  std::vector<double> mean, std;  // [3 * height * width]
};

PixelStatistics pixel_statistics(const ImageSet& set, size_t width) {
  PixelStatistics s{std::vector<double>(width), std::vector<double>(width)};
  for (size_t i = 0; i < set.pixels.size(); ++i) {
    s.mean[i % width] += set.pixels[i];
    s.std[i % width] += static_cast<double>(set.pixels[i]) * set.pixels[i];
  }
  const auto count = static_cast<double>(set.count);
  for (size_t k = 0; k < width; ++k) {
    s.mean[k] /= count;
    s.std[k] = std::sqrt(s.std[k] / count - s.mean[k] * s.mean[k]);
  }
  return s;
}

// [count, width], each pixel value standardized, each row of unit length.
std::vector<float> unit_rows(const ImageSet& set, const PixelStatistics& statistics) {
  const size_t width = statistics.mean.size();
  std::vector<float> rows(set.pixels.size());
  for (size_t begin = 0; begin < rows.size(); begin += width) {
    double squares = 0;
    for (size_t k = 0; k < width; ++k) {
      const double v = (set.pixels[begin + k] - statistics.mean[k]) / statistics.std[k];
      rows[begin + k] = static_cast<float>(v);
      squares += v * v;
    }
    for (size_t k = 0; k < width; ++k) rows[begin + k] *= static_cast<float>(1 / std::sqrt(squares));
  }
  return rows;
}

}  // namespace

double pixel_knn_accuracy(const ImageSet& train, const ImageSet& test, size_t k) {
  const size_t width = static_cast<size_t>(3 * train.height * train.width), count = static_cast<size_t>(train.count);
  SIMCLR_CHECK(width % 64 == 0 && k <= count, "{} values an image, {} images", width, count);
  const PixelStatistics statistics = pixel_statistics(train, width);
  const std::vector<float> bank = unit_rows(train, statistics), queries = unit_rows(test, statistics);
  std::vector<float> all(static_cast<size_t>(test.count) * count);  // [test, train]
  similarities(queries, bank, width, all);
  std::vector<size_t> nearest(count);
  int64_t right = 0;
  for (int64_t q = 0; q < test.count; ++q) {
    const float* similarity = all.data() + static_cast<size_t>(q) * count;
    std::iota(nearest.begin(), nearest.end(), size_t{0});
    std::partial_sort(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(k), nearest.end(),
                      [&](size_t x, size_t y) { return similarity[x] > similarity[y]; });
    std::vector<double> votes(train.class_names.size());
    for (size_t n = 0; n < k; ++n) votes[train.labels[nearest[n]]] += std::exp(similarity[nearest[n]] / 0.1);
    const auto best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    right += best == test.labels[q];
  }
  return static_cast<double>(right) / static_cast<double>(test.count);
}

}  // namespace simclr::test
