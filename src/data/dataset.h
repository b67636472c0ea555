// Labeled images by index: what the sampler, the views and the evaluation see of a data set. Sets that live in
// memory (synthetic, CIFAR-10) are a ImageSet behind InMemoryDataset; sets that decode on demand are another Dataset.
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

// kBank: the labeled images whose labels answer for those of the test split. They are the training split but for
// sets that train on images without labels: open_bank().
enum class Split { kTrain, kTest, kBank };
const char* name_of(Split split);  // "train", "test", "bank"

// All images of one split, of one size. Planar, because the first thing that a view does is to turn a row of one
// channel into floats.
struct ImageSet {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [count, 3, height, width]
  std::vector<int32_t> labels;  // [count], indices into class_names
  std::vector<std::string> class_names;
};

// Told the height and width of a whole image; answers 1, 2, 4 or 8: at which part of its size it may be decoded.
using ChooseReduction = std::function<int(int64_t height, int64_t width)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t count() const = 0;
  virtual bool has_labels() const { return true; }
  virtual int32_t label(int64_t i) const = 0;  // index into class_names(); only where the set has labels
  virtual const std::vector<std::string>& class_names() const = 0;

  // Image i. `storage` holds the pixels if the set does not: the view is valid as long as both live and storage is
  // not used again. Threads may call it at the same time, each with its own storage. Throws Error(kData) naming the
  // file.
  virtual PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const = 0;

  // Image i for a use that needs no more than choose() says. choose() is called once, before the pixels are made;
  // sets without reduced images hand out the whole one all the same. Otherwise as image().
  virtual PlanarImage image_for(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const {
    const PlanarImage whole = image(i, storage);
    choose(whole.height, whole.width);
    return whole;
  }

  // True: an image costs milliseconds, every time; false: it lies in memory.
  virtual bool decodes() const { return false; }

  // Where the files that were passed over are noted; null for sets that pass over none.
  virtual BadFiles* bad_files() const { return nullptr; }

  // sha256 (hexadecimal) of what the set contains, in order: equal on all ranks, kept in checkpoints.
  virtual std::string fingerprint(const Beat& beat) const = 0;
};

class InMemoryDataset : public Dataset {
 public:
  explicit InMemoryDataset(ImageSet set);  // checks that the sizes agree and labels lie in range
  int64_t count() const override { return set_.count; }
  int32_t label(int64_t i) const override { return set_.labels[i]; }
  const std::vector<std::string>& class_names() const override { return set_.class_names; }
  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override;
  std::string fingerprint(const Beat& beat) const override;

 private:
  ImageSet set_;
};

// The split that the settings name, checked whole. Throws Error(kData) with file, what was expected, what was found.
std::unique_ptr<Dataset> open_dataset(const DataSettings& settings, Split split, const Beat& beat = no_beat);

// The bank where it is not the training split; null where it is. Errors as above.
std::unique_ptr<Dataset> open_bank(const DataSettings& settings, const Beat& beat = no_beat);

// Mean and standard deviation (over the pixels, divided by their number) of each channel, values in [0, 1].
struct ChannelStatistics {
  std::array<double, 3> mean{}, std{};
};

// Over all images of the set, or over 1024 evenly spaced ones where it has more and decodes them. The sums are exact
// integers, so no order of summation exists. Error(kData) if empty.
ChannelStatistics channel_statistics(const Dataset& dataset, const Beat& beat = no_beat);

}  // namespace simclr
