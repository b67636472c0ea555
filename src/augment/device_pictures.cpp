#include "src/augment/device_pictures.h"

#include <algorithm>
#include <cstring>

namespace simclr {

DevicePictures::DevicePictures(Context& context, const Dataset& dataset, int64_t most_at_once, int64_t resident_bytes,
                               const Beat& beat)
    : context_(context), dataset_(dataset) {
  int64_t total = 0, largest = 0;
  for (int64_t i = 0; i < dataset.count(); ++i) {
    const PictureView picture = dataset.picture(i, storage_);
    all_.push_back({total, picture.height, picture.width});
    total += picture.bytes();
    largest = std::max(largest, picture.bytes());
    largest_height_ = std::max(largest_height_, picture.height);
    largest_width_ = std::max(largest_width_, picture.width);
    beat();
  }
  resident_ = total <= resident_bytes;
  if (resident_) {
    memory_ = context.allocate(static_cast<size_t>(total));
    copy_whole_set(beat);
    return;
  }
  all_.clear();
  memory_ = context.allocate(static_cast<size_t>(most_at_once * largest));
  for (auto& upload : uploads_) upload = context.device().make_upload(memory_.bytes());
}

void DevicePictures::copy_whole_set(const Beat& beat) {
  for (int64_t i = 0; i < dataset_.count(); ++i) {
    const PictureView picture = dataset_.picture(i, storage_);
    context_.device().upload(memory_.data() + all_[static_cast<size_t>(i)].offset, picture.pixels,
                             static_cast<size_t>(picture.bytes()));
    beat();
  }
}

std::span<const DevicePictures::Place> DevicePictures::provide(std::span<const int64_t> samples) {
  places_.clear();
  if (resident_) {
    for (const int64_t sample : samples) places_.push_back(all_[static_cast<size_t>(sample)]);
    return places_;
  }
  Upload& upload = *uploads_[turn_++ % uploads_.size()];
  std::byte* host = upload.host();
  int64_t next = 0;
  for (const int64_t sample : samples) {
    const PictureView picture = dataset_.picture(sample, storage_);
    SIMCLR_CHECK(next + picture.bytes() <= static_cast<int64_t>(memory_.bytes()), "more pictures than announced");
    std::memcpy(host + next, picture.pixels, static_cast<size_t>(picture.bytes()));
    places_.push_back({next, picture.height, picture.width});
    next += picture.bytes();
  }
  upload.start(memory_.data(), static_cast<size_t>(next));
  return places_;
}

}  // namespace simclr
