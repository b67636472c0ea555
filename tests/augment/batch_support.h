// Arrays of images and jobs for render_views, for the tests of either device.
#pragma once

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/augment/augment_batch.h"
#include "tests/augment/image_support.h"

namespace simclr::test {

// Images of noise, {height, width} each, side by side with a few bytes between them.
struct ImageArray {
  explicit ImageArray(const std::vector<std::pair<int64_t, int64_t>>& all) : sizes(all) {
    for (const auto& [height, width] : sizes) {
      offsets.push_back(static_cast<int64_t>(bytes.size()));
      const TestImage image = noise_image(height, width, static_cast<uint32_t>(offsets.size()));
      bytes.insert(bytes.end(), image.pixels.begin(), image.pixels.end());
      bytes.insert(bytes.end(), offsets.size() % 3, uint8_t{255});
    }
    bytes.resize(offsets.back() + 3 * sizes.back().first * sizes.back().second);
  }
  TestImage image_of(const ViewJob& job) const {
    const auto begin = bytes.begin() + job.offset;
    return {job.height, job.width, {begin, begin + 3 * job.height * job.width}};
  }
  int64_t most_height() const {
    int64_t most = 0;
    for (const auto& size : sizes) most = std::max(most, size.first);
    return most;
  }
  int64_t most_width() const {
    int64_t most = 0;
    for (const auto& size : sizes) most = std::max(most, size.second);
    return most;
  }

  std::vector<std::pair<int64_t, int64_t>> sizes;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> bytes;
};

// Job k: a random view of image k mod their number.
inline std::vector<ViewJob> random_jobs(const ImageArray& images, const ViewParams& params, PhiloxKey key,
                                        size_t count) {
  std::vector<ViewJob> jobs;
  for (size_t k = 0; k < count; ++k) {
    const size_t i = k % images.sizes.size();
    const auto [height, width] = images.sizes[i];
    const ViewId id{.view = static_cast<uint32_t>(k % 2), .sample = static_cast<uint32_t>(k), .epoch = 3};
    jobs.push_back({images.offsets[i], height, width, draw_view(params, key, id, height, width)});
  }
  return jobs;
}

// In the layout of a CPU.
inline Images images_of(Elements data, const std::vector<ViewJob>& jobs, const ViewParams& params) {
  return {data, 1, static_cast<int64_t>(jobs.size()), 3, params.size, params.size};
}

// A CpuExec with the scratch that a call needs, full of NaN.
class CpuRender {
 public:
  CpuRender(const ViewParams& params, const ImageArray& images, int threads) {
    CpuExec cpu{.threads = threads};
    const ScratchNeed need = render_views_scratch(cpu, params, images.most_height(), images.most_width());
    cpu.thread_scratch_bytes = (need.thread_bytes + 255) / 256 * 256;
    scratch_.assign(static_cast<size_t>(threads) * cpu.thread_scratch_bytes / sizeof(float), NAN);
    cpu.thread_scratch = reinterpret_cast<std::byte*>(scratch_.data());
    exec_ = cpu;
  }
  const Exec& exec() const { return exec_; }

 private:
  std::vector<float> scratch_;
  Exec exec_;
};

}  // namespace simclr::test
