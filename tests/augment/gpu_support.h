// What the tests of images on a GPU share: a data set whose images differ in size, and what the device holds.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/data/dataset.h"
#include "src/device/context.h"
#include "tests/augment/image_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {

// 24 to 40 pixels high, 30 to 34 wide; the largest are 16 and 33.
inline test::TestImage odd_image(int64_t i) {
  return test::noise_image(24 + i % 17, 30 + i % 5, static_cast<uint32_t>(i));
}

// Images that are made when somebody asks; `decodes`: the set says so, as those of JPEG files do.
class OddImages : public Dataset {
 public:
  explicit OddImages(int64_t count, bool decodes = false) : count_(count), decodes_(decodes) {}
  int64_t count() const override { return count_; }
  int32_t label(int64_t) const override { return 0; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string fingerprint(const Beat&) const override { return ""; }
  bool decodes() const override { return decodes_; }
  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override {
    test::TestImage made = odd_image(i);
    storage = std::move(made.pixels);
    return {storage.data(), made.height, made.width};
  }
  int64_t bytes() const {
    int64_t total = 0;
    for (int64_t i = 0; i < count_; ++i) total += 3 * (24 + i % 17) * (30 + i % 5);
    return total;
  }

 private:
  int64_t count_;
  bool decodes_;
  std::vector<std::string> names_ = {"noise"};
};

// What a view of images holds, as stored and padded.
inline std::vector<std::byte> bytes_of(Device& device, const ConstImages& images) {
  std::vector<std::byte> bytes(images.elements() * size_of(images.type()));
  device.download(bytes.data(), images.data.address(), bytes.size());
  return bytes;
}

// bytes_of() images in float32, as the host lays them out: [rows, 3, pixels]. The padding channels have to be zero.
inline std::vector<float> planar_floats(std::span<const std::byte> bytes, int64_t rows, int64_t pixels) {
  std::vector<float> stored(bytes.size() / sizeof(float));
  std::memcpy(stored.data(), bytes.data(), bytes.size());
  EXPECT_TRUE(test::padding_is_zero(stored, 3, kCudaImageChannels));
  return test::from_nhwc<float>(std::span<const float>(stored), rows, 3, pixels, kCudaImageChannels);
}

}  // namespace simclr
