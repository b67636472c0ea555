// Images that the host makes and the GPU gets: nothing but their layout and storage changes on the way.
#include "src/augment/uploaded_images.h"

#include <limits>

#include "src/augment/evaluation_loader.h"
#include "src/augment/make_sources.h"
#include "src/device/choose_device.h"
#include "tests/augment/gpu_support.h"

namespace simclr {
namespace {

using simclr::test::usual_views;

constexpr int64_t kShards = 2, kSamples = 3, kSize = 5, kRows = kShards * kSamples, kPixels = kSize * kSize;

// Normalized pixels of call `call`; among them one half-way between two bfloat16 (ties go to the even one, here down
// and up), and one that rounds up into the next power of two.
std::vector<float> host_images(uint32_t call) {
  std::vector<float> values = test::random_values(kRows * 3 * kPixels, call);
  for (float& v : values) v *= 3.0F;
  values[0] = 1.00390625F;   // 1 + 2^-8: to 1
  values[1] = -1.01171875F;  // -(1 + 3 * 2^-8): to -(1 + 2^-6)
  values[2] = 1.9999999F;
  values[3] = -0.0F;
  return values;
}

// What the device has to hold: NHWC with its channels, those from 3 on zero, stored as `type`.
std::vector<std::byte> expected_bytes(DataType type, const std::vector<float>& host) {
  const test::StoredArray stored(type, test::to_nhwc(host, kRows, 3, kPixels, kCudaImageChannels));
  std::vector<std::byte> bytes(stored.count() * size_of(type));
  test::expect_success(cudaMemcpy(bytes.data(), stored.data().address(), bytes.size(), cudaMemcpyDeviceToHost),
                       "cudaMemcpy");
  return bytes;
}

// The host continues at once and overwrites its images, as loaders do.
TEST(UploadedImages, AreThoseOfTheHostCallAfterCall) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    Context context(make_cuda_device({.threads = 2, .precision = precision}));
    UploadedImages uploaded(context, kShards, kSamples, kSize);
    std::vector<std::unique_ptr<Readback>> readbacks;
    std::vector<std::vector<std::byte>> expected;
    for (uint32_t call = 0; call < 7; ++call) {
      std::vector<float> host = host_images(call);
      expected.push_back(expected_bytes(context.device().storage(), host));
      const Images& images = uploaded.put({host.data(), kShards, kSamples, 3, kSize, kSize});
      EXPECT_EQ(images.type(), context.device().storage());
      std::fill(host.begin(), host.end(), std::numeric_limits<float>::quiet_NaN());
      readbacks.push_back(context.device().make_readback(expected.back().size()));
      readbacks.back()->start(images.data.address());
    }
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::memcmp(readbacks[i]->wait(), expected[i].data(), expected[i].size()), 0)
          << i << (precision == Precision::kBf16 ? " bf16" : " fp32");
  }
}

TEST(UploadedImages, RefuseAnotherShape) {
  Context context(make_cuda_device({}));
  UploadedImages uploaded(context, kShards, kSamples, kSize);
  std::vector<float> host(4 * 4 * 3 * 6 * 6);
  const ConstImages shapes[] = {{host.data(), 3, kSamples, 3, kSize, kSize},
                                {host.data(), kShards, 4, 3, kSize, kSize},
                                {host.data(), kShards, kSamples, 3, 6, kSize},
                                {host.data(), kShards, kSamples, 3, kSize, 6}};
  for (const ConstImages& shape : shapes) EXPECT_THAT([&] { uploaded.put(shape); }, test::fires("from the host"));
}

// Images that are decoded become views on the host, so that the batches are the host's to the bit.
TEST(UploadedBatchSource, HasTheBatchesOfTheHost) {
  const OddImages dataset(40, true);
  const SamplePlan plan({.seed = 11, .count = 40, .global_batch = 16, .shards = 4});
  const ViewLoaderSettings settings{
      .seed = 11, .first_shard = 1, .shard_count = 2, .start_step = 1, .end_step = 6, .workers = 2};
  Context context(make_cuda_device({}));
  const auto source = make_batch_source(context, dataset, plan, usual_views(16), settings);
  ASSERT_NE(dynamic_cast<UploadedBatchSource*>(source.get()), nullptr);
  ViewLoader host(dataset, plan, usual_views(16), settings);
  for (int64_t step = 1; step < 6; ++step) {
    const Batch &batch = source->next(), &expected = host.next();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(batch.epoch, expected.epoch);
    EXPECT_EQ(batch.samples, expected.samples);
    EXPECT_GE(source->last_wait_s(), 0);
    EXPECT_TRUE(test::same_bits(planar_floats(bytes_of(context.device(), batch.images), 2 * 8, 256),
                                std::span<const float>(expected.images.data.as<float>(), 2 * 8 * 3 * 256)))
        << step;
  }
}

TEST(UploadedEvaluationSource, ShowsTheImagesOfTheHost) {
  const OddImages dataset(13, true);
  Context context(make_cuda_device({}));
  const auto source = make_evaluation_source(context, dataset, usual_views(16), 2, 4);
  ASSERT_NE(dynamic_cast<UploadedEvaluationSource*>(source.get()), nullptr);
  EXPECT_EQ(source->call_images(), 8);
  EvaluationLoader host(dataset, usual_views(16), 1);
  std::vector<float> expected(8 * 3 * 256);
  for (const int64_t first : {0, 8, 3, 13}) {  // the second goes beyond the set, the last begins there
    host.fill(first, {expected.data(), 2, 4, 3, 16, 16});
    EXPECT_TRUE(test::same_bits(planar_floats(bytes_of(context.device(), source->load(first)), 8, 256), expected))
        << first;
  }
}

}  // namespace
}  // namespace simclr
