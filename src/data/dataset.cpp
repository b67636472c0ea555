// Images in memory, their fingerprint and their statistics; the choice of a data set by its format.
#include "src/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/base/sha256.h"
#include "src/data/cifar10.h"
#include "src/data/cifar100.h"
#include "src/data/image_folder.h"
#include "src/data/mnist.h"
#include "src/data/packed_dataset.h"
#include "src/data/stl10.h"
#include "src/data/synthetic.h"

namespace simclr {
const char* name_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kTest:
      return "test";
    case Split::kBank:
      return "bank";
  }
  return "?";
}

InMemoryDataset::InMemoryDataset(ImageSet set) : set_(std::move(set)) {
  const int64_t bytes = set_.count * 3 * set_.height * set_.width;
  SIMCLR_CHECK(std::ssize(set_.pixels) == bytes, "{} bytes of pixels, {} expected", set_.pixels.size(), bytes);
  SIMCLR_CHECK(std::ssize(set_.labels) == set_.count, "{} labels for {} images", set_.labels.size(), set_.count);
  const int64_t classes = std::ssize(set_.class_names);
  SIMCLR_CHECK(std::all_of(set_.labels.begin(), set_.labels.end(), [&](int32_t l) { return l >= 0 && l < classes; }),
               "a label outside [0, {})", classes);
}

PlanarImage InMemoryDataset::image(int64_t i, std::vector<uint8_t>&) const {
  return {set_.pixels.data() + i * 3 * set_.height * set_.width, set_.height, set_.width};
}

std::string InMemoryDataset::fingerprint(const Beat& beat) const {
  Sha256 hash;
  const std::array<int64_t, 3> shape = {set_.count, set_.height, set_.width};
  hash.update(shape.data(), sizeof shape);
  const auto update = [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); };
  in_pieces(set_.pixels.data(), set_.pixels.size(), beat, update);
  in_pieces(set_.labels.data(), set_.labels.size() * sizeof(int32_t), beat, update);
  return hash.hex();
}

std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, Split split, const Beat& beat) {
  switch (settings.format) {
    case DataFormat::kSynthetic:
      return std::make_unique<InMemoryDataset>(draw_synthetic(settings.synthetic, split, beat));
    case DataFormat::kCifar10:
      return std::make_unique<InMemoryDataset>(read_cifar10(settings.path, split, beat));
    case DataFormat::kCifar100:
      return std::make_unique<InMemoryDataset>(read_cifar100(settings.path, split, beat));
    case DataFormat::kMnist:
      return std::make_unique<InMemoryDataset>(read_mnist(settings.path, split, beat));
    case DataFormat::kStl10:
      return open_stl10(settings.path, split);
    case DataFormat::kImageFolder:
      return open_image_folder(settings, split, beat);
    case DataFormat::kPacked:
      return open_packed(settings.path, split);
  }
  fail(ExitCode::kOther, "data format {} has no reader", static_cast<int>(settings.format));
}

std::unique_ptr<Dataset> open_bank(const DataSettings& settings, const Beat& beat) {
  if (settings.format == DataFormat::kPacked) return open_packed_bank(settings.path);
  if (settings.format == DataFormat::kStl10) return open_dataset(settings, Split::kBank, beat);
  return nullptr;
}

ChannelStatistics channel_statistics(const Dataset& dataset, const Beat& beat) {
  if (dataset.count() == 0)
    fail(ExitCode::kData,
         "the training split has no images, so mean and std cannot be computed; correct data.path or set "
         "views.normalize");
  std::array<uint64_t, 3> sum{}, squares{};
  uint64_t pixels = 0;
  std::vector<uint8_t> storage;
  constexpr int64_t kMostDecoded = 1024;
  const int64_t used = dataset.decodes() ? std::min(dataset.count(), kMostDecoded) : dataset.count();
  for (int64_t n = 0; n < used; ++n) {
    const PlanarImage image = dataset.image(n * dataset.count() / used, storage);
    const int64_t size = image.height * image.width;
    for (int64_t c = 0; c < 3; ++c) {
      const uint8_t* plane = image.row(c, 0);
      uint64_t plane_sum = 0, plane_squares = 0;
      for (int64_t k = 0; k < size; ++k) {
        const uint32_t v = plane[k];
        plane_sum += v;
        plane_squares += v * v;
      }
      sum[c] += plane_sum;
      squares[c] += plane_squares;
    }
    pixels += size;
    beat();
  }
  ChannelStatistics result;
  for (size_t c = 0; c < 3; ++c) {
    const double mean = as_double(sum[c]) / as_double(pixels);
    const double variance = as_double(squares[c]) / as_double(pixels) - mean * mean;
    result.mean[c] = mean / 255;
    result.std[c] = std::sqrt(std::max(variance, 0.0)) / 255;
  }
  return result;
}

}  // namespace simclr
