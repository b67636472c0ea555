#include "src/report/images.h"

#include <algorithm>
#include <cmath>

#include "src/augment/view_loader.h"
#include "src/augment/view_params.h"

namespace simclr {
namespace {

constexpr uint8_t kBackground = 235;
constexpr int64_t kGap = 4, kWideGap = 12;  // pixels

// Each pixel of the box [height, width] is the rounded mean of the source pixels that it covers, at least one.
void resize_into(const PlanarImage& image, int64_t height, int64_t width, RgbImage& canvas, int64_t top, int64_t left) {
  for (int64_t y = 0; y < height; ++y) {
    const int64_t y0 = y * image.height / height, y1 = std::max(y0 + 1, (y + 1) * image.height / height);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t x0 = x * image.width / width, x1 = std::max(x0 + 1, (x + 1) * image.width / width);
      const int64_t pixels = (y1 - y0) * (x1 - x0);
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (int64_t v = y0; v < y1; ++v)
          for (int64_t u = x0; u < x1; ++u) sum += image.row(c, v)[u];
        canvas.at(top + y, left + x)[c] = static_cast<uint8_t>((sum + pixels / 2) / pixels);
      }
    }
  }
}

// A view with values in [0, 1], [3, size, size], as bytes in the same order.
std::vector<uint8_t> bytes_of(const float* view, int64_t size) {
  std::vector<uint8_t> bytes(3 * size * size);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(std::lround(255 * std::clamp(view[i], 0.0F, 1.0F)));
  return bytes;
}

void paste(const RgbImage& image, RgbImage& canvas, int64_t top, int64_t left) {
  for (int64_t y = 0; y < image.height; ++y)
    std::copy(image.at(y, 0), image.at(y, 0) + 3 * image.width, canvas.at(top + y, left));
}

}  // namespace

RgbImage fit_into_square(const PlanarImage& image, int64_t side) {
  const int64_t longest = std::max(image.height, image.width);
  const int64_t height = std::max<int64_t>(1, image.height * side / longest);
  const int64_t width = std::max<int64_t>(1, image.width * side / longest);
  RgbImage canvas(side, side, kBackground);
  resize_into(image, height, width, canvas, (side - height) / 2, (side - width) / 2);
  return canvas;
}

std::vector<AugmentedPair> draw_pairs(const Dataset& dataset, const Settings& settings, int64_t step, int64_t count,
                                      int64_t side) {
  // One image per shard: the first shards then hold the first images of the batch. Views do not depend on the number
  // of shards, and without normalization their values are in [0, 1].
  const int64_t batch = settings.train.global_batch, size = settings.data.image_size;
  const SamplePlan plan({.seed = settings.run.seed, .count = dataset.count(), .global_batch = batch, .shards = batch});
  ViewSettings views = settings.views;
  views.normalize = {.mean = {0, 0, 0}, .std = {1, 1, 1}};
  const ViewParams params = make_view_params(views, size, {});
  ViewLoader loader(dataset, plan, params,
                    {.seed = settings.run.seed,
                     .first_shard = 0,
                     .shard_count = std::min(count, batch),
                     .start_step = step,
                     .end_step = step + 1,
                     .workers = 0});
  const Batch& drawn = loader.next();  // images [count, 2, 3, size, size]
  std::vector<AugmentedPair> pairs;
  std::vector<uint8_t> storage;
  for (size_t i = 0; i < drawn.samples.size(); ++i) {
    AugmentedPair pair{.sample = drawn.samples[i], .original = {}, .views = {}};
    pair.original = fit_into_square(dataset.image(pair.sample, storage), side);
    for (size_t v = 0; v < 2; ++v) {
      const std::vector<uint8_t> bytes = bytes_of(drawn.images.sample(2 * i + v).as<float>(), size);
      pair.views[v] = fit_into_square({bytes.data(), size, size}, side);
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

int64_t shown_side(int64_t image_size) {
  return image_size * ((96 + image_size - 1) / image_size);
}

RgbImage grid_of(const std::vector<std::vector<RgbImage>>& rows) {
  const int64_t side = rows.at(0).at(0).height;
  const int64_t columns = std::ssize(rows[0]);
  const auto left_of = [&](int64_t column) {
    return kGap + column * (side + kGap) + (column > 0 ? kWideGap - kGap : 0);
  };
  RgbImage canvas(kGap + std::ssize(rows) * (side + kGap), left_of(columns), 255);
  for (int64_t r = 0; r < std::ssize(rows); ++r)
    for (int64_t c = 0; c < std::ssize(rows[r]); ++c) paste(rows[r][c], canvas, kGap + r * (side + kGap), left_of(c));
  return canvas;
}

std::vector<std::vector<RgbImage>> rows_of(const std::vector<AugmentedPair>& pairs) {
  std::vector<std::vector<RgbImage>> rows;
  for (const AugmentedPair& pair : pairs) rows.push_back({pair.original, pair.views[0], pair.views[1]});
  return rows;
}

}  // namespace simclr
