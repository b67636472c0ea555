// render_views on CUDA against the CPU: every step of a view, sources and sizes that fit no block, both places where a
// view's planes can lie, and bits that depend on nothing but the job.
#include "kernels/augment/augment_batch.h"

#include "tests/augment/batch_support.h"
#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using namespace simclr::test;

constexpr PhiloxKey kKey = philox_key(7, RandomPurpose::kViews);

// One call; values as stored, [jobs, size, size, kCudaImageChannels].
std::vector<float> render_on_cuda(const ImageArray& images, const std::vector<ViewJob>& jobs, const ViewParams& params,
                                  DataType type) {
  const ScratchNeed need = render_views_scratch(CudaExec{}, params, images.most_height(), images.most_width());
  const test::CudaRun run(test::precision_of(type), need);
  const DeviceArray<uint8_t> bytes(images.bytes);
  const DeviceArray<ViewJob> on_device(jobs);
  const test::StoredArray out(type, jobs.size() * static_cast<size_t>(params.size * params.size * kCudaImageChannels));
  Images views = images_of(out.data(), jobs, params);
  views.layout = Layout::kNhwc;
  render_views(run.exec(), params, {bytes.data(), bytes.count()}, {jobs, on_device.data()}, views);
  return out.download();
}

std::vector<float> render_on_cpu(const ImageArray& images, const std::vector<ViewJob>& jobs, const ViewParams& params) {
  std::vector<float> out(jobs.size() * static_cast<size_t>(3 * params.size * params.size));
  CpuRender cpu(params, images, 1);
  render_views(cpu.exec(), params, images.bytes, jobs, images_of(out.data(), jobs, params));
  return out;
}

// 1e-5 of the unit interval before normalization: steps are continuous in their inputs and shrink an error, or enlarge
// it up to 1.4 times each; a value in [0, 1] has roundings of 6e-8. In bfloat16 the rounding of the result as well.
void expect_agreement(const ImageArray& images, const std::vector<ViewJob>& jobs, const ViewParams& params,
                      DataType type) {
  const std::vector<float> got = render_on_cuda(images, jobs, params, type);
  const int64_t pixels = params.size * params.size;
  EXPECT_TRUE(test::padding_is_zero(got, 3, kCudaImageChannels));
  const std::vector<float> want = render_on_cpu(images, jobs, params);
  const auto planar = test::from_nhwc<float>(got, static_cast<int64_t>(jobs.size()), 3, pixels, kCudaImageChannels);
  const double rounding = type == DataType::kBfloat16 ? test::unit_of(type) : 0;
  EXPECT_TRUE(test::within(planar, test::widen(want),
                           [&](size_t i) {
                             const size_t channel = i / static_cast<size_t>(pixels) % 3;
                             return 1e-5 * params.inverse_std[channel] + rounding * std::fabs(want[i]);
                           }))
      << "views of " << params.size << ", " << test::name_of(type);
}

// Flips, jitter in some order, grayscale and blur by chance (usual_views).
TEST(RenderViewsCuda, AgreesWithTheCpu) {
  const ImageArray images({{32, 32}, {41, 29}, {1, 1}, {5, 200}, {96, 96}});
  for (const DataType type : test::kStorageTypes) {
    for (const int64_t size : {2, 31, 32, 33}) {
      ViewParams params = usual_views(size);
      expect_agreement(images, random_jobs(images, params, kKey, 16), params, type);
    }
  }
}

TEST(RenderViewsCuda, EachStepAlone) {
  const ImageArray images({{37, 45}});
  ViewParams params = usual_views(32);
  params.mean = {0, 0, 0};
  params.inverse_std = {1, 1, 1};
  ViewJob plain = whole_image_job(0, 37, 45);
  plain.draw.crop = {.top = 3, .left = 5, .height = 30, .width = 21};
  std::vector<ViewJob> jobs(9, plain);
  jobs[1].draw.flip = true;
  for (size_t k = 2; k < 6; ++k) jobs[k].draw.jitter = true;
  jobs[2].draw.brightness = 1.4F;
  jobs[3].draw.contrast = 0.6F;
  jobs[4].draw.saturation = 1.4F;
  jobs[5].draw.hue = -0.4F;
  jobs[6].draw.grayscale = true;
  jobs[7].draw.blur = true;
  jobs[7].draw.blur_sigma = 1.3F;
  expect_agreement(images, jobs, params, DataType::kFloat32);
  // Each step does something: a step that both sides leave out would agree as well.
  const std::vector<float> out = render_on_cuda(images, jobs, params, DataType::kFloat32);
  const size_t view = out.size() / jobs.size();
  for (size_t k = 1; k < 8; ++k)
    EXPECT_NE(std::vector<float>(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(view)),
              std::vector<float>(out.begin() + static_cast<std::ptrdiff_t>(k * view),
                                 out.begin() + static_cast<std::ptrdiff_t>((k + 1) * view)))
        << k;
}

TEST(RenderViewsCuda, LargeViewsGoThroughTheWorkspace) {
  const ImageArray images({{150, 200}, {90, 301}});
  for (const DataType type : test::kStorageTypes) {
    const ViewParams params = usual_views(128);
    EXPECT_GT(render_views_scratch(CudaExec{}, params, 150, 301).workspace_bytes, 0U);
    expect_agreement(images, random_jobs(images, params, kKey, 6), params, type);
  }
  EXPECT_EQ(render_views_scratch(CudaExec{}, usual_views(96), 150, 301).workspace_bytes, 0U);
}

// More views than the workspace has places: a block takes one after the other.
TEST(RenderViewsCuda, MoreViewsThanPlacesInTheWorkspace) {
  const ImageArray images({{60, 50}});
  const ViewParams params = usual_views(122);
  std::vector<ViewJob> jobs(263);  // nearly all of them empty
  std::vector<ViewJob> real = random_jobs(images, params, kKey, 4);
  real[1].draw.jitter = real[1].draw.blur = false;  // nothing in it makes threads wait between its crop and the next
  jobs[0] = real[0], jobs[3] = real[1], jobs[256] = real[2], jobs[259] = real[3];
  const std::vector<float> all = render_on_cuda(images, jobs, params, DataType::kBfloat16);
  const std::vector<float> few = render_on_cuda(images, real, params, DataType::kBfloat16);
  const size_t view = few.size() / real.size();
  const auto part = [view](const std::vector<float>& v, size_t k) { return std::span(v).subspan(k * view, view); };
  EXPECT_TRUE(test::same_bits(part(all, 0), part(few, 0)));
  EXPECT_TRUE(test::same_bits(part(all, 3), part(few, 1)));
  EXPECT_TRUE(test::same_bits(part(all, 256), part(few, 2)));
  EXPECT_TRUE(test::same_bits(part(all, 259), part(few, 3)));
  EXPECT_THAT(std::vector<float>(part(all, 1).begin(), part(all, 1).end()), testing::Each(0.0F));
}

// A blur that no draw uses makes the plane of its own necessary, and the view of 124 too large for shared memory.
TEST(RenderViewsCuda, BitsDoNotDependOnWhereThePlanesLie) {
  const ImageArray images({{150, 200}});
  ViewParams without = usual_views(124);
  without.blur_probability = 0;
  ViewParams with = without;
  with.blur_probability = 1e-9F;
  const std::vector<ViewJob> jobs = random_jobs(images, without, kKey, 4);
  ASSERT_EQ(render_views_scratch(CudaExec{}, without, 150, 200).workspace_bytes, 0U);
  ASSERT_GT(render_views_scratch(CudaExec{}, with, 150, 200).workspace_bytes, 0U);
  EXPECT_TRUE(test::same_bits(render_on_cuda(images, jobs, without, DataType::kFloat32),
                              render_on_cuda(images, jobs, with, DataType::kFloat32)));
}

// As a rank does that has one shard of many.
TEST(RenderViewsCuda, BitsDependOnTheJobAlone) {
  const ImageArray images({{32, 32}, {41, 29}});
  const ViewParams params = usual_views(32);
  const std::vector<ViewJob> jobs = random_jobs(images, params, kKey, 8);
  const std::vector<float> all = render_on_cuda(images, jobs, params, DataType::kFloat32);
  const size_t view = all.size() / jobs.size();
  for (size_t k = 0; k < jobs.size(); ++k) {
    const std::vector<float> one = render_on_cuda(images, {jobs[k]}, params, DataType::kFloat32);
    EXPECT_TRUE(test::same_bits(one, std::span(all).subspan(k * view, view))) << k;
  }
}

TEST(RenderViewsCuda, ShowsWholeImagesAndNone) {
  const ImageArray images({{150, 100}, {7, 50}});
  const ViewParams params = usual_views(20);
  expect_agreement(images,
                   {whole_image_job(images.offsets[0], 150, 100), ViewJob{}, whole_image_job(images.offsets[1], 7, 50)},
                   params, DataType::kFloat32);
}

}  // namespace
}  // namespace simclr
