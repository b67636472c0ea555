// Pairs of views made on a GPU, of images that travel there call by call: those of the host.
#include "src/augment/pair_source.h"

#include "src/augment/uploaded_images.h"
#include "src/device/choose_device.h"
#include "tests/augment/gpu_support.h"

namespace simclr {
namespace {

using simclr::test::usual_views;

constexpr int64_t kView = 3 * 16 * 16;
const std::vector<int64_t> kImages = {16, 1, 33, 2, 8};  // the largest, small ones, the largest again

// The views of all pairs, planar, in calls of shards * samples; zeros after the last pair are left out when they are.
std::vector<float> views(Context& context, const Dataset& dataset, int64_t shards, int64_t samples) {
  const auto source = make_pair_source(context, dataset, usual_views(16), 3, kImages, shards, samples);
  const int64_t rows = shards * samples, count = 2 * static_cast<int64_t>(kImages.size());
  EXPECT_EQ(source->call_images(), rows);
  std::vector<float> all;
  for (int64_t first = 0; first < count; first += rows) {
    const ConstImages images = source->load(first);
    if (context.device().is_cpu()) {
      all.insert(all.end(), images.data.as<float>(), images.data.as<float>() + images.elements());
    } else {
      const std::vector<float> call = planar_floats(bytes_of(context.device(), images), rows, 256);
      all.insert(all.end(), call.begin(), call.end());
    }
  }
  EXPECT_TRUE(std::all_of(all.begin() + count * kView, all.end(), [](float v) { return v == 0.0F; })) << "padding";
  all.resize(count * kView);
  return all;
}

// Within 1e-5 of the unit interval before normalization, as the op's own tests argue.
TEST(DevicePairSource, MakesTheViewsOfTheHost) {
  const OddImages dataset(40);
  Context cpu(1), gpu(make_cuda_device({}));
  const std::vector<float> expected = views(cpu, dataset, 2, 2), found = views(gpu, dataset, 2, 2);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5 * usual_views(16).inverse_std[i / 256 % 3]) << i;
}

TEST(DevicePairSource, CallsChangeNothing) {
  const OddImages dataset(40);
  Context gpu(make_cuda_device({}));
  const std::vector<float> expected = views(gpu, dataset, 2, 2);
  EXPECT_TRUE(test::same_bits(views(gpu, dataset, 1, 2), expected));
  EXPECT_TRUE(test::same_bits(views(gpu, dataset, 3, 4), expected));  // one call, longer than the pairs
}

// A call asked for again, and out of order, holds the same.
TEST(DevicePairSource, HasTheSameViewsWheneverTheyAreAskedFor) {
  const OddImages dataset(40);
  Context gpu(make_cuda_device({}));
  const auto source = make_pair_source(gpu, dataset, usual_views(16), 3, kImages, 2, 2);
  std::vector<std::vector<std::byte>> calls;
  for (const int64_t first : {0, 4, 8, 4, 0}) calls.push_back(bytes_of(gpu.device(), source->load(first)));
  EXPECT_EQ(calls[3], calls[1]);
  EXPECT_EQ(calls[4], calls[0]);
  EXPECT_NE(calls[0], calls[1]);
}

TEST(PairSourceOnAGpu, TakesDecodedImagesFromTheHost) {
  const OddImages dataset(40, true);
  Context cpu(1), gpu(make_cuda_device({}));
  const auto source = make_pair_source(gpu, dataset, usual_views(16), 3, kImages, 2, 2);
  EXPECT_NE(dynamic_cast<UploadedEvaluationSource*>(source.get()), nullptr);
  EXPECT_TRUE(test::same_bits(views(gpu, dataset, 2, 2), views(cpu, dataset, 2, 2)));
}

TEST(PairSourceOnAGpu, RefusesHalfAPair) {
  const OddImages dataset(40);
  Context gpu(make_cuda_device({}));
  EXPECT_THAT([&] { make_pair_source(gpu, dataset, usual_views(16), 3, kImages, 1, 3); },
              test::fires("pairs in calls of 3 views"));
}

}  // namespace
}  // namespace simclr
