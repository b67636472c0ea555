#include "src/augment/uploaded_images.h"

#include <cstring>

#include "kernels/common/bfloat16.h"
#include "kernels/common/cuda_exec.h"
#include "kernels/common/error.h"
#include "kernels/common/parallel.h"

namespace simclr {
namespace {

// Converts one image [3, size, size] to [size * size, kCudaImageChannels]; channels from the fourth on are zero.
template <typename T>
void interleave(const float* from, int64_t pixels, T* to) {
  for (int64_t i = 0; i < pixels; ++i) {
    T* pixel = to + i * kCudaImageChannels;
    for (int64_t c = 0; c < 3; ++c) pixel[c] = element_of<T>(from[c * pixels + i]);
    std::memset(pixel + 3, 0, (kCudaImageChannels - 3) * sizeof(T));
  }
}

}  // namespace

UploadedImages::UploadedImages(Context& context, int64_t shards, int64_t samples, int64_t size)
    : context_(context),
      images_{.data = {},
              .shards = shards,
              .samples = samples,
              .channels = 3,
              .height = size,
              .width = size,
              .layout = Layout::kNhwc},
      memory_(context.allocate_storage(images_.elements())) {
  images_.data = {memory_.data(), storage_of(context.exec())};
  for (auto& upload : uploads_) upload = context.device().make_upload(memory_.bytes());
}

const Images& UploadedImages::put(const ConstImages& host) {
  SIMCLR_CHECK(host.shards == images_.shards && host.samples == images_.samples && host.height == images_.height &&
                   host.width == images_.width,
               "[{}, {}, 3, {}, {}] from the host", host.shards, host.samples, host.height, host.width);
  Upload& upload = *uploads_[turn_++ % uploads_.size()];
  std::byte* const to = upload.host();
  const int64_t pixels = images_.height * images_.width;
  const auto images = host.as<float>();
  with_element_type(images_.type(), [&]<typename T>(T) {
    parallel_for(CpuExec{.threads = context_.threads()}, images_.shards * images_.samples, [&](int64_t k, int) {
      interleave(images.sample(k), pixels, reinterpret_cast<T*>(to) + k * images_.sample_elements());
    });
  });
  upload.start(memory_.data(), memory_.bytes());
  return images_;
}

}  // namespace simclr
