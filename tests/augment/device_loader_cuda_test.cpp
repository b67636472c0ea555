// Views and whole images made on a GPU: the same batches as on the host, and the same bits whether the data set lies
// on the GPU or travels there step by step.
#include "src/augment/device_view_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "src/augment/evaluation_loader.h"
#include "src/augment/make_sources.h"
#include "src/device/choose_device.h"
#include "tests/augment/gpu_support.h"

namespace simclr {
namespace {

using simclr::test::TestImage;
using simclr::test::usual_views;
using testing::HasSubstr;

constexpr uint64_t kSeed = 11;
constexpr int64_t kSteps = 7;  // more than steps are under way, and into the second epoch

struct Collected {
  std::vector<std::byte> images;
  std::vector<int64_t> samples;
  bool operator==(const Collected&) const = default;
};

Collected collect(const OddImages& dataset, int64_t resident_bytes, Precision precision = Precision::kFp32) {
  Context context(make_cuda_device({.precision = precision}));
  const SamplePlan plan({.seed = kSeed, .count = dataset.count(), .global_batch = 16, .shards = 4});
  DeviceViewLoader loader(context, dataset, plan, usual_views(16),
                          {.seed = kSeed, .first_shard = 1, .shard_count = 2, .start_step = 2}, resident_bytes);
  // As the step does it: the images of each step are taken while later ones are being made, without waiting in between.
  std::vector<std::unique_ptr<Readback>> readbacks;
  Collected all;
  for (int64_t step = 2; step < 2 + kSteps; ++step) {
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(batch.epoch, step / plan.steps_per_epoch());
    EXPECT_GE(loader.last_wait_s(), 0);
    all.samples.insert(all.samples.end(), batch.samples.begin(), batch.samples.end());
    const size_t bytes = batch.images.elements() * size_of(batch.images.type());
    readbacks.push_back(context.device().make_readback(bytes));
    readbacks.back()->start(batch.images.data.address());
    all.images.resize(all.images.size() + bytes);
  }
  const size_t each = all.images.size() / readbacks.size();
  for (size_t i = 0; i < readbacks.size(); ++i) std::memcpy(all.images.data() + i * each, readbacks[i]->wait(), each);
  return all;
}

TEST(DeviceViewLoader, ASetThatDoesNotFitGivesTheSameBits) {
  const OddImages dataset(70);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Collected resident = collect(dataset, dataset.bytes(), precision);
    EXPECT_FALSE(resident.images.empty());
    for (const int64_t limit : {dataset.bytes() - 1, int64_t{0}})
      EXPECT_EQ(collect(dataset, limit, precision), resident) << limit << " bytes may stay on the GPU";
  }
}

// Within 1e-5 of the unit interval before normalization, as the op's own tests argue.
TEST(DeviceViewLoader, MakesTheViewsOfTheHost) {
  const OddImages dataset(70);
  const ViewParams params = usual_views(16);
  const SamplePlan plan({.seed = kSeed, .count = dataset.count(), .global_batch = 16, .shards = 4});
  const Collected device = collect(dataset, 0);
  ViewLoader host(dataset, plan, params,
                  {.seed = kSeed, .first_shard = 1, .shard_count = 2, .start_step = 2, .end_step = 2 + kSteps});
  const size_t step_floats = 2 * 8 * 16 * 16 * kCudaImageChannels;
  std::vector<float> values(device.images.size() / sizeof(float));
  std::memcpy(values.data(), device.images.data(), device.images.size());
  ASSERT_EQ(values.size(), kSteps * step_floats);
  std::vector<int64_t> samples;
  for (size_t step = 0; step < kSteps; ++step) {
    const Batch& batch = host.next();
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    const std::span<const float> stored(values.data() + step * step_floats, step_floats);
    EXPECT_TRUE(test::padding_is_zero(stored, 3, kCudaImageChannels));
    const std::vector<float> planar = test::from_nhwc<float>(stored, 2 * 8, 3, 16 * 16, kCudaImageChannels);
    for (size_t i = 0; i < planar.size(); ++i)
      ASSERT_NEAR(planar[i], batch.images.data.as<float>()[i], 1e-5 * params.inverse_std[i / 256 % 3])
          << step << ", " << i;
  }
  EXPECT_EQ(device.samples, samples);
}

TEST(DeviceViewLoader, IsWhatAGpuGets) {
  const OddImages dataset(40);
  const SamplePlan plan({.seed = kSeed, .count = 40, .global_batch = 16, .shards = 4});
  Context context(make_cuda_device({}));
  const auto source = make_batch_source(context, dataset, plan, usual_views(16), {.seed = kSeed, .shard_count = 4});
  EXPECT_NE(dynamic_cast<DeviceViewLoader*>(source.get()), nullptr);
}

// Images are where provide() says, for what is queued from then on: also when the host is several calls ahead.
TEST(DeviceImages, AreThereWhenTheyAreNeeded) {
  const OddImages dataset(30);
  Context context(make_cuda_device({}));
  const int64_t most = 3 * 38 * 34;  // bytes of the largest, image 14
  for (const bool fits : {true, false}) {
    DeviceImages images(context, dataset, 4, fits ? dataset.bytes() : dataset.bytes() - 1);
    EXPECT_EQ(images.resident(), fits);
    EXPECT_EQ(images.largest_height(), 40);
    EXPECT_EQ(images.largest_width(), 34);
    EXPECT_EQ(static_cast<int64_t>(images.bytes().size()), fits ? dataset.bytes() : 4 * most);
    std::vector<std::unique_ptr<Readback>> readbacks;
    std::vector<std::pair<int64_t, size_t>> expected;  // image, its readback
    for (int64_t call = 0; call < 9; ++call) {
      std::vector<int64_t> samples;
      for (int64_t k = 0; k < 1 + call % 4; ++k) samples.push_back((call * 7 + k * 11) % 30);
      const auto places = images.provide(samples);
      ASSERT_EQ(places.size(), samples.size());
      for (size_t k = 0; k < samples.size(); ++k) {
        EXPECT_EQ(places[k].height, 24 + samples[k] % 17);
        EXPECT_EQ(places[k].width, 30 + samples[k] % 5);
        readbacks.push_back(
            context.device().make_readback(static_cast<size_t>(3 * places[k].height * places[k].width)));
        readbacks.back()->start(images.bytes().data() + places[k].offset);
        expected.emplace_back(samples[k], readbacks.size() - 1);
      }
    }
    for (const auto& [sample, readback] : expected) {
      const TestImage image = odd_image(sample);
      EXPECT_EQ(std::memcmp(readbacks[readback]->wait(), image.pixels.data(), image.pixels.size()), 0) << sample;
    }
  }
}

// A streamed call sends the bytes of its images, not the whole capacity of the buffer.
TEST(DeviceImages, SendOnlyWhatACallAsksFor) {
  const OddImages dataset(30);
  Context context(make_cuda_device({}));
  DeviceImages images(context, dataset, 4, 0);
  const std::vector<int64_t> four = {3, 5, 8, 9}, one = {7};
  const auto places = images.provide(four);
  const std::vector<DeviceImages::Place> before(places.begin(), places.end());
  images.provide(one);
  for (size_t k = 2; k < 4; ++k) {  // image 7 has covered the first and a part of the second
    const TestImage expected = odd_image(four[k]);
    std::vector<uint8_t> found(expected.pixels.size());
    context.device().download(found.data(), images.bytes().data() + before[k].offset, found.size());
    EXPECT_EQ(found, expected.pixels) << four[k];
  }
}

TEST(DeviceImages, RefuseMoreThanWasAnnounced) {
  const OddImages dataset(40);
  Context context(make_cuda_device({}));
  DeviceImages images(context, dataset, 1, 0);
  const std::vector<int64_t> one = {16}, two = {16, 33};  // the largest
  EXPECT_EQ(images.provide(one).size(), 1U);
  EXPECT_THAT([&] { images.provide(two); }, testing::ThrowsMessage<Error>(HasSubstr("more than most_at_once images")));
}

// Whole images in calls of one size: what is beyond the set is all zeros, and bits do not depend on the call.
TEST(DeviceEvaluationSource, ShowsTheWholeImagesOfTheHost) {
  const OddImages dataset(13);
  const ViewParams params = usual_views(16);
  Context context(make_cuda_device({}));
  const auto source = make_evaluation_source(context, dataset, params, 2, 4);
  ASSERT_NE(dynamic_cast<DeviceEvaluationSource*>(source.get()), nullptr);
  EXPECT_EQ(source->call_images(), 8);
  EvaluationLoader host(dataset, params, 1);
  std::vector<float> expected(8 * 3 * 16 * 16);
  for (const int64_t first : {0, 8}) {
    const std::vector<std::byte> bytes = bytes_of(context.device(), source->load(first));
    const std::vector<float> planar = planar_floats(bytes, 8, 256);
    host.fill(first, {expected.data(), 2, 4, 3, 16, 16});
    for (size_t i = 0; i < planar.size(); ++i) {
      if (expected[i] == 0 && first == 8 && i >= 5 * 3 * 256) {
        ASSERT_EQ(planar[i], 0.0F) << i;
      } else {
        ASSERT_NEAR(planar[i], expected[i], 1e-5 * params.inverse_std[i / 256 % 3]) << i;
      }
    }
  }
  const std::vector<std::byte> from_8 = bytes_of(context.device(), source->load(8));
  const std::vector<std::byte> from_9 = bytes_of(context.device(), source->load(9));
  const size_t image = from_8.size() / 8;
  EXPECT_EQ(std::memcmp(from_8.data() + image, from_9.data(), 4 * image), 0);
  EXPECT_THAT([&] { source->load(13); }, testing::ThrowsMessage<Error>(HasSubstr("images from 13 on of 13")));
}

}  // namespace
}  // namespace simclr
