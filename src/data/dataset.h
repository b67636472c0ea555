// Images by index, with or without labels: the interface between the data formats and the sampler, the views and the
// evaluation. A set in memory (synthetic, CIFAR-10) is an ImageSet in an InMemoryDataset; mapped files and images that
// are decoded on demand implement Dataset themselves.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/augment/planar_image.h"
#include "src/base/beat.h"
#include "src/config/settings.h"
#include "src/data/bad_files.h"

namespace simclr {

// kBank: the labeled images that k-NN and the linear probe learn from. It is the training split, except in data sets
// whose training images have no labels (STL-10): open_bank().
enum class Split { kTrain, kTest, kBank };
const char* name_of(Split split);  // "train", "test", "bank"

// All images of one split, all of one size. Planar, because rendering a view starts with rows of one channel.
struct ImageSet {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [count, 3, height, width]
  std::vector<int32_t> labels;  // [count], indices into class_names
  std::vector<std::string> class_names;
};

// Takes the height and width of a whole image; returns 1, 2, 4 or 8: the factor by which it may be decoded smaller.
using ChooseReduction = std::function<int(int64_t height, int64_t width)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t count() const = 0;
  virtual bool has_labels() const { return true; }
  virtual int32_t label(int64_t i) const = 0;  // index into class_names(); only where the set has labels
  virtual const std::vector<std::string>& class_names() const = 0;

  // Image i. The pixels are in `storage` if the set itself does not hold them: the result is valid while the set and
  // storage exist and storage is not reused. Thread-safe if each thread has a storage of its own. Throws Error(kData)
  // naming the file.
  virtual PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const = 0;

  // Image i, reduced by up to the factor that choose() returns. choose() is called once, before the pixels are
  // decoded; sets without reduced decoding return the whole image. Otherwise as image().
  virtual PlanarImage image_for(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const {
    const PlanarImage whole = image(i, storage);
    choose(whole.height, whole.width);
    return whole;
  }

  // True if each call of image() decodes (milliseconds); false if the pixels are in memory.
  virtual bool decodes() const { return false; }

  // The list of skipped files; null for sets that never skip one.
  virtual BadFiles* bad_files() const { return nullptr; }

  // SHA-256 (hexadecimal) of the set's contents in order: equal on all ranks, recorded in checkpoints.
  virtual std::string fingerprint(const Beat& beat) const = 0;
};

class InMemoryDataset : public Dataset {
 public:
  explicit InMemoryDataset(ImageSet set);  // checks that the sizes agree and all labels are in range
  int64_t count() const override { return set_.count; }
  int32_t label(int64_t i) const override { return set_.labels[i]; }
  const std::vector<std::string>& class_names() const override { return set_.class_names; }
  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override;
  std::string fingerprint(const Beat& beat) const override;

 private:
  ImageSet set_;
};

// Opens and checks one split of the configured data set. Throws Error(kData): file, expected, found.
std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, Split split, const Beat& beat = no_beat);

// Opens the bank if it is not the training split, else returns null. Errors as above.
std::unique_ptr<Dataset> open_bank(const DataSettings& settings, const Beat& beat = no_beat);

// Mean and standard deviation (over the pixels, divided by their number) of each channel, values in [0, 1].
struct ChannelStatistics {
  std::array<double, 3> mean{}, std{};
};

// Over all images of the set, or over 1024 evenly spaced ones if it has more and decodes them. The sums are exact
// integers, so the result does not depend on their order. Error(kData) if the set is empty.
ChannelStatistics channel_statistics(const Dataset& dataset, const Beat& beat = no_beat);

}  // namespace simclr
