// Images of a data set in the memory of a device: the whole set when it is small enough, else what is asked for,
// copied through pinned memory without anybody waiting.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/data/dataset.h"
#include "src/device/context.h"

namespace simclr {

// A set up to this size stays on the device; half of that of the smallest GPU that such training is done on.
inline constexpr int64_t kResidentBytes = int64_t{8} << 30;

class DeviceImages {
 public:
  // Where an image lies in bytes(): planar [3, height, width] from `offset` on.
  struct Place {
    int64_t offset = 0, height = 0, width = 0;
  };

  // The data set lies in memory (decodes() is false: asking it for an image's size reads no pixel) and outlives this.
  // most_at_once: images of one provide(). A set of up to resident_bytes is copied: beat between images.
  DeviceImages(Context& context, const Dataset& dataset, int64_t most_at_once, int64_t resident_bytes,
               const Beat& beat = no_beat);

  // The images are there for what is queued on the device from now on, until the next call.
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
  std::vector<Place> all_;                          // resident: of every image
  std::vector<Place> places_;                       // of the last provide()
  std::array<std::unique_ptr<Upload>, 3> uploads_;  // not resident: in turn, as many as steps are under way
  size_t turn_ = 0;
  std::vector<uint8_t> storage_;  // of one image
};

}  // namespace simclr
