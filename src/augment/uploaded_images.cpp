#include "src/augment/uploaded_images.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/common/cuda_exec.h"
#include "kernels/common/error.h"
#include "kernels/common/parallel.h"

namespace simclr {
namespace {

// To nearest, ties to even, as the device rounds; normalised pixels are finite.
uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// One image [3, size, size] to [size * size, channels of the device], those from 3 on zero.
template <typename T, typename Convert>
void interleave(const float* from, int64_t pixels, T* to, Convert convert) {
  for (int64_t i = 0; i < pixels; ++i) {
    T* pixel = to + i * kCudaImageChannels;
    for (int64_t c = 0; c < 3; ++c) pixel[c] = convert(from[c * pixels + i]);
    std::memset(pixel + 3, 0, (kCudaImageChannels - 3) * sizeof(T));
  }
}

}  // namespace

UploadedImages::UploadedImages(Context& context, int64_t shards, int64_t samples, int64_t size)
    : context_(context),
      images_{nullptr, shards, samples, 3, size, size, context.device().storage()},
      memory_(context.allocate_storage(shards * samples * size * size * kCudaImageChannels)) {
  images_.data = memory_.as<float>().data();
  const int64_t elements = shards * samples * size * size * kCudaImageChannels;
  for (auto& upload : uploads_)
    upload = context.device().make_upload(static_cast<size_t>(elements) * size_of(images_.type));
}

const Images& UploadedImages::put(const ConstImages& host) {
  SIMCLR_CHECK(host.shards == images_.shards && host.samples == images_.samples && host.height == images_.height &&
                   host.width == images_.width,
               "[{}, {}, 3, {}, {}] from the host", host.shards, host.samples, host.height, host.width);
  Upload& upload = *uploads_[turn_++ % uploads_.size()];
  std::byte* const to = upload.host();
  const int64_t pixels = images_.height * images_.width, each = pixels * kCudaImageChannels;
  parallel_for(CpuExec{.threads = context_.threads()}, images_.shards * images_.samples, [&](int64_t k, int) {
    if (images_.type == DataType::kBfloat16) {
      interleave(host.sample(k), pixels, reinterpret_cast<uint16_t*>(to) + k * each, to_bfloat16);
    } else {
      interleave(host.sample(k), pixels, reinterpret_cast<float*>(to) + k * each, [](float v) { return v; });
    }
  });
  upload.start(memory_.data(), memory_.bytes());
  return images_;
}

}  // namespace simclr
