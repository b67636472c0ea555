// Images of a data set in device memory: the whole set if it is small enough, else the images of each call, copied
// asynchronously through pinned memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/data/dataset.h"
#include "src/device/context.h"

namespace simclr {

// A set up to this size stays on the device: half the memory of the smallest GPU that is used for such training.
inline constexpr int64_t kResidentBytes = int64_t{8} << 30;

class DeviceImages {
 public:
  // An image in bytes(): planar [3, height, width] from `offset` on.
  struct Place {
    int64_t offset = 0, height = 0, width = 0;
  };

  // The data set is in host memory (decodes() is false, so reading an image's size costs nothing) and outlives this.
  // most_at_once: upper limit of images in one provide(). A set of up to resident_bytes is copied now; beat between
  // images.
  DeviceImages(Context& context, const Dataset& dataset, int64_t most_at_once, int64_t resident_bytes,
               const Beat& beat = no_beat);

  // Makes the images available to work queued on the device after this call and before the next one.
  std::span<const Place> provide(std::span<const int64_t> samples);
  std::span<const uint8_t> bytes() const { return memory_.as<uint8_t>(); }

  int64_t largest_height() const { return largest_height_; }
  int64_t largest_width() const { return largest_width_; }
  bool resident() const { return resident_; }

 private:
  void copy_whole_set(const Beat& beat);

  Context& context_;
  const Dataset& dataset_;
  bool resident_ = false;
  int64_t largest_height_ = 0, largest_width_ = 0;
  Buffer memory_;
  std::vector<Place> all_;                          // every image, if resident
  std::vector<Place> places_;                       // result of the last provide()
  std::array<std::unique_ptr<Upload>, 3> uploads_;  // if not resident: used in turn, one for each step in flight
  size_t turn_ = 0;
  std::vector<uint8_t> storage_;  // for one image
};

}  // namespace simclr
