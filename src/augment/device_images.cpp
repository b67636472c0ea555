#include "src/augment/device_images.h"

#include <algorithm>
#include <cstring>

namespace simclr {

DeviceImages::DeviceImages(Context& context, const Dataset& dataset, int64_t most_at_once, int64_t resident_bytes,
                           const Beat& beat)
    : context_(context), dataset_(dataset) {
  int64_t total = 0, largest = 0;
  for (int64_t i = 0; i < dataset.count(); ++i) {
    const PlanarImage image = dataset.image(i, storage_);
    all_.push_back({total, image.height, image.width});
    total += image.bytes();
    largest = std::max(largest, image.bytes());
    largest_height_ = std::max(largest_height_, image.height);
    largest_width_ = std::max(largest_width_, image.width);
    beat();
  }
  resident_ = total <= resident_bytes;
  if (resident_) {
    memory_ = context.allocate(total);
    copy_whole_set(beat);
    return;
  }
  all_.clear();
  memory_ = context.allocate(most_at_once * largest);
  for (auto& upload : uploads_) upload = context.device().make_upload(memory_.bytes());
}

void DeviceImages::copy_whole_set(const Beat& beat) {
  for (int64_t i = 0; i < dataset_.count(); ++i) {
    const PlanarImage image = dataset_.image(i, storage_);
    context_.device().upload(memory_.data() + all_[i].offset, image.pixels, image.bytes());
    beat();
  }
}

std::span<const DeviceImages::Place> DeviceImages::provide(std::span<const int64_t> samples) {
  places_.clear();
  if (resident_) {
    for (const int64_t sample : samples) places_.push_back(all_[sample]);
    return places_;
  }
  Upload& upload = *uploads_[turn_++ % uploads_.size()];
  std::byte* host = upload.host();
  int64_t next = 0;
  for (const int64_t sample : samples) {
    const PlanarImage image = dataset_.image(sample, storage_);
    SIMCLR_CHECK(next + image.bytes() <= std::ssize(memory_.as<std::byte>()), "more than most_at_once images");
    std::memcpy(host + next, image.pixels, image.bytes());
    places_.push_back({next, image.height, image.width});
    next += image.bytes();
  }
  upload.start(memory_.data(), next);
  return places_;
}

}  // namespace simclr
