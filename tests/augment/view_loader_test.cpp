// Batches: what is in them, in which order, and that threads, ranks and resuming change nothing.
#include "src/augment/view_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <span>
#include <thread>

#include "kernels/common/error.h"
#include "src/augment/evaluation_loader.h"
#include "src/augment/view_params.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

using test::noise_image;
using test::TestImage;
using test::usual_views;

// Images of different sizes, decoded on demand: 24 to 40 pixels high. Image `broken` and `broken + 1` cannot be
// read.
class OddImages : public Dataset {
 public:
  explicit OddImages(int64_t count, int64_t broken = -1, int delay_us = 0)
      : count_(count), broken_(broken), delay_us_(delay_us) {}
  int64_t count() const override { return count_; }
  int32_t label(int64_t) const override { return 0; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::string fingerprint(const Beat&) const override { return ""; }
  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override {
    if (broken_ >= 0 && (i == broken_ || i == broken_ + 1)) fail(ExitCode::kData, "image {} cannot be read", i);
    if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    TestImage made = noise_image(24 + i % 17, 30 + i % 5, static_cast<uint32_t>(i));
    storage = std::move(made.pixels);
    return {storage.data(), made.height, made.width};
  }

 private:
  int64_t count_, broken_;
  int delay_us_;
  std::vector<std::string> names_ = {"noise"};
};

constexpr uint64_t kSeed = 11;
constexpr int64_t kSteps = 12;

SamplePlan plan_for(const Dataset& dataset, int64_t batch = 16, int64_t shards = 4) {
  return SamplePlan({.seed = kSeed, .count = dataset.count(), .global_batch = batch, .shards = shards});
}

// Images and samples of all steps from `start` on, one after the other.
struct Collected {
  std::vector<float> images;
  std::vector<int64_t> samples;
  bool operator==(const Collected&) const = default;
};

Collected collect(const Dataset& dataset, ViewLoaderSettings settings) {
  settings.seed = kSeed;
  settings.end_step = kSteps;
  const SamplePlan plan = plan_for(dataset);
  ViewLoader loader(dataset, plan, usual_views(16), settings);
  Collected all;
  for (int64_t step = settings.start_step; step < kSteps; ++step) {
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.step, step);
    EXPECT_EQ(batch.epoch, step / plan.steps_per_epoch());
    const float* views = batch.images.data.as<float>();
    all.images.insert(all.images.end(), views, views + batch.images.elements());
    all.samples.insert(all.samples.end(), batch.samples.begin(), batch.samples.end());
  }
  return all;
}

TEST(ViewLoader, FillsShardsWithView1ThenView2) {
  const OddImages dataset(70);
  const SamplePlan plan = plan_for(dataset);  // 4 steps an epoch, n = 4
  const ViewParams params = usual_views(16);
  ViewLoader loader(dataset, plan, params,
                    {.seed = kSeed, .first_shard = 1, .shard_count = 2, .start_step = 5, .end_step = 6});
  const Batch& batch = loader.next();
  EXPECT_EQ(batch.step, 5);
  EXPECT_EQ(batch.epoch, 1);
  EXPECT_EQ(batch.images.shards, 2);
  EXPECT_EQ(batch.images.samples, 8);
  std::vector<uint8_t> storage;
  for (int64_t s = 0; s < 2; ++s) {
    const std::vector<int64_t> samples = plan.samples_of(5, 1 + s);
    for (int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(batch.samples[4 * s + k], samples[k]);
      const TestImage image = noise_image(24 + samples[k] % 17, 30 + samples[k] % 5, static_cast<uint32_t>(samples[k]));
      for (uint32_t view = 0; view < 2; ++view) {
        const ViewDraw draw = draw_view(params, philox_key(kSeed, RandomPurpose::kViews),
                                        {view, static_cast<uint32_t>(samples[k]), 1}, image.height, image.width);
        const std::vector<float> expected = test::render(image, draw, params);
        ASSERT_EQ(std::memcmp(batch.images.sample(s * batch.images.samples + 4 * view + k).address(), expected.data(),
                              expected.size() * sizeof(float)),
                  0);
      }
    }
  }
}

TEST(ViewLoader, TheNumberOfWorkersChangesNothing) {
  const OddImages dataset(70);
  const Collected inline_views = collect(dataset, {.first_shard = 0, .shard_count = 4, .workers = 0});
  for (const int workers : {1, 2, 5})
    EXPECT_EQ(collect(dataset, {.first_shard = 0, .shard_count = 4, .workers = workers}), inline_views) << workers;
}

TEST(ViewLoader, ARankMakesItsPartOfTheGlobalBatch) {
  const OddImages dataset(70);
  const Collected whole = collect(dataset, {.first_shard = 0, .shard_count = 4, .workers = 2});
  const size_t shard = whole.images.size() / kSteps / 4;
  for (int64_t s = 0; s < 4; ++s) {
    const Collected part = collect(dataset, {.first_shard = s, .shard_count = 1, .workers = 1});
    for (size_t step = 0; step < kSteps; ++step) {
      ASSERT_EQ(std::memcmp(part.images.data() + step * shard,
                            whole.images.data() + (step * 4 + static_cast<size_t>(s)) * shard, shard * sizeof(float)),
                0);
    }
  }
}

TEST(ViewLoader, StartsAtAnyStep) {
  const OddImages dataset(70);
  const Collected whole = collect(dataset, {.first_shard = 2, .shard_count = 2, .workers = 1});
  for (const int64_t start : {1, 4, 7}) {
    const Collected rest = collect(dataset, {.first_shard = 2, .shard_count = 2, .start_step = start, .workers = 2});
    ASSERT_TRUE(std::equal(rest.images.begin(), rest.images.end(),
                           whole.images.end() - static_cast<std::ptrdiff_t>(rest.images.size()), whole.images.end()));
  }
}

TEST(ViewLoader, ViewsDifferBetweenEpochs) {
  const OddImages dataset(16);  // every step is an epoch with the same 16 images
  const Collected all = collect(dataset, {.first_shard = 0, .shard_count = 4, .workers = 1});
  const size_t batch = all.images.size() / kSteps, image = batch / 32;
  for (size_t a = 0; a < 32; ++a) {
    for (size_t b = 0; b < 32; ++b) {
      ASSERT_NE(
          std::memcmp(all.images.data() + a * image, all.images.data() + batch + b * image, image * sizeof(float)), 0);
    }
  }
}

// The error comes with its own text, at its own step, for every number of workers; then again.
TEST(ViewLoader, AnErrorSurfacesWhenItsBatchIsDue) {
  const OddImages dataset(70, 33);
  const SamplePlan plan = plan_for(dataset);
  int64_t bad_step = 0;
  std::string expected;
  for (bool found = false; !found; bad_step += !found) {
    for (int64_t s = 0; s < 4 && !found; ++s) {
      for (const int64_t sample : plan.samples_of(bad_step, s)) {
        if ((sample == 33 || sample == 34) && !found) {
          expected = "image " + std::to_string(sample) + " cannot be read";
          found = true;
        }
      }
    }
  }
  for (const int workers : {0, 1, 3}) {
    ViewLoader loader(dataset, plan, usual_views(16),
                      {.seed = kSeed, .shard_count = 4, .end_step = 100, .workers = workers});
    for (int64_t step = 0; step < bad_step; ++step) EXPECT_EQ(loader.next().step, step);
    for (int again = 0; again < 2; ++again) {
      try {
        loader.next();
        FAIL() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kData);
        EXPECT_EQ(error.what(), expected);
      }
    }
  }
}

TEST(ViewLoader, EndsAtAnyMoment) {
  const OddImages dataset(70, -1, 50);
  const SamplePlan plan = plan_for(dataset);
  for (int taken = 0; taken < 6; ++taken) {
    for (const int pause_us : {0, 300, 3000}) {
      ViewLoader loader(dataset, plan, usual_views(16),
                        {.seed = kSeed, .shard_count = 4, .end_step = 100, .workers = 3});
      for (int i = 0; i < taken; ++i) loader.next();
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
  }
}

TEST(ViewLoader, ReportsHowLongTheCallerWaited) {
  const OddImages dataset(70, -1, 1000);  // 16 images of a millisecond each
  const SamplePlan plan = plan_for(dataset);
  ViewLoader loader(dataset, plan, usual_views(16), {.seed = kSeed, .shard_count = 4, .end_step = 100, .workers = 0});
  loader.next();
  EXPECT_GE(loader.last_wait_s(), 0.016);
  const double first = loader.last_wait_s();
  loader.next();
  EXPECT_DOUBLE_EQ(loader.total_wait_s(), first + loader.last_wait_s());
}

TEST(ViewLoader, RefusesToGoPastTheEnd) {
  const OddImages dataset(70);
  const SamplePlan plan = plan_for(dataset);
  ViewLoader loader(dataset, plan, usual_views(16),
                    {.seed = kSeed, .shard_count = 4, .start_step = 3, .end_step = 4, .workers = 1});
  loader.next();
  EXPECT_THROW(loader.next(), Error);
}

TEST(EvaluationLoader, FillsPaddedCalls) {
  const OddImages dataset(10);
  const ViewParams params = usual_views(16);
  std::vector<float> memory(6 * 3 * 256), expected(3 * 256), scratch(100000);
  const Images call{.data = memory.data(), .shards = 2, .samples = 3, .channels = 3, .height = 16, .width = 16};
  for (const int threads : {1, 3}) {
    EvaluationLoader loader(dataset, params, threads);
    for (const auto& [first, real] : {std::pair<int64_t, int64_t>{0, 6}, {6, 4}, {12, 0}}) {
      std::fill(memory.begin(), memory.end(), std::numeric_limits<float>::quiet_NaN());
      EXPECT_EQ(loader.fill(first, call), real);
      std::vector<uint8_t> storage;
      for (int64_t k = 0; k < 6; ++k) {
        std::fill(expected.begin(), expected.end(), 0.0f);
        if (k < real)
          render_whole(dataset.image(first + k, storage), params, std::as_writable_bytes(std::span(scratch)),
                       expected.data());
        ASSERT_EQ(std::memcmp(call.sample(k).address(), expected.data(), expected.size() * sizeof(float)), 0)
            << first << " + " << k;
      }
    }
  }
}

TEST(MakeViewParams, TakesOverTheSettings) {
  ViewSettings views;
  views.jitter = {.probability = 0.7, .brightness = 0.4, .contrast = 1.5, .saturation = 0.2, .hue = 0.1};
  views.blur = {.probability = 0.5, .sigma = {0.3, 1.5}};
  const ViewParams p = make_view_params(views, 64, {.mean = {0.1, 0.2, 0.3}, .std = {0.5, 0.25, 0.2}});
  EXPECT_EQ(p.size, 64);
  EXPECT_FLOAT_EQ(p.jitter_probability, 0.7f);
  EXPECT_FLOAT_EQ(p.brightness.low, 0.6f);
  EXPECT_FLOAT_EQ(p.brightness.high, 1.4f);
  EXPECT_FLOAT_EQ(p.contrast.low, 0.0f);  // never negative
  EXPECT_FLOAT_EQ(p.contrast.high, 2.5f);
  EXPECT_FLOAT_EQ(p.saturation.low, 0.8f);
  EXPECT_FLOAT_EQ(p.hue.low, -0.1f);
  EXPECT_FLOAT_EQ(p.hue.high, 0.1f);
  EXPECT_FLOAT_EQ(p.flip_probability, 0.5f);
  EXPECT_FLOAT_EQ(p.grayscale_probability, 0.2f);
  EXPECT_FLOAT_EQ(p.blur_probability, 0.5f);
  EXPECT_FLOAT_EQ(p.blur_sigma.low, 0.3f);
  EXPECT_FLOAT_EQ(p.blur_sigma.high, 1.5f);
  EXPECT_EQ(p.blur_taps, 7);
  EXPECT_EQ(p.crop_scale, views.crop_scale);
  EXPECT_EQ(p.crop_ratio, views.crop_ratio);
  EXPECT_FLOAT_EQ(p.mean[2], 0.3f);
  EXPECT_FLOAT_EQ(p.inverse_std[1], 4.0f);
  views.normalize = {.mean = {0.5, 0.6, 0.7}, .std = {0.1, 0.2, 0.4}};
  const ViewParams given = make_view_params(views, 64, {});  // the statistics are not needed then
  EXPECT_FLOAT_EQ(given.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(given.inverse_std[2], 2.5f);
}

TEST(MakeViewParams, RefusesAConstantChannel) {
  EXPECT_THROW(make_view_params({}, 32, {.mean = {0.1, 0.2, 0.3}, .std = {0.5, 0, 0.2}}), Error);
}

}  // namespace
}  // namespace simclr
