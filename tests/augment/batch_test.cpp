// render_views on the CPU: the bits of render_view and render_whole, job by job, and what it refuses. The GPU is held
// to it in tests/kernels/augment_cuda_test.cpp.
#include "kernels/augment/augment_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/augment/batch_support.h"

namespace simclr {
namespace {

using namespace simclr::test;

constexpr PhiloxKey kKey = philox_key(42, RandomPurpose::kViews);

std::vector<float> render_on_cpu(const ImageArray& images, const std::vector<ViewJob>& jobs, const ViewParams& params,
                                 int threads) {
  std::vector<float> out(jobs.size() * static_cast<size_t>(3 * params.size * params.size), NAN);
  CpuRender cpu(params, images, threads);
  render_views(cpu.exec(), params, images.bytes, jobs, images_of(out.data(), jobs, params));
  return out;
}

TEST(RenderViews, HasTheBitsOfRenderView) {
  const ViewParams params = usual_views(19);
  const ImageArray images({{20, 31}, {1, 1}, {41, 29}, {5, 200}});
  const std::vector<ViewJob> jobs = random_jobs(images, params, kKey, 12);
  const std::vector<float> one = render_on_cpu(images, jobs, params, 1);
  EXPECT_EQ(one, render_on_cpu(images, jobs, params, 3));
  for (size_t k = 0; k < jobs.size(); ++k) {
    const std::vector<float> expected = render(images.image_of(jobs[k]), jobs[k].draw, params);
    EXPECT_EQ(std::vector<float>(one.begin() + static_cast<std::ptrdiff_t>(k * expected.size()),
                                 one.begin() + static_cast<std::ptrdiff_t>((k + 1) * expected.size())),
              expected);
  }
}

TEST(RenderViews, ShowsWholeImagesAndNone) {
  const ViewParams params = usual_views(9);
  const ImageArray images({{20, 31}});
  const std::vector<ViewJob> jobs = {whole_image_job(images.offsets[0], 20, 31), ViewJob{}};
  const std::vector<float> out = render_on_cpu(images, jobs, params, 1);
  std::vector<float> expected(3 * 81), scratch(static_cast<size_t>(view_scratch_bytes(params, 20, 31)) / sizeof(float));
  const TestImage image = images.image_of(jobs[0]);
  render_whole(image.view(), params, std::as_writable_bytes(std::span(scratch)), expected.data());
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 243), expected);
  EXPECT_THAT(std::vector<float>(out.begin() + 243, out.end()), testing::Each(0.0F));
}

TEST(RenderViews, RefusesJobsThatAreDefects) {
  const ViewParams params{.size = 8};  // without blur
  const ImageArray images({{10, 12}});
  const auto broken = [&](auto&& change) {
    std::vector<ViewJob> jobs = {whole_image_job(0, 10, 12)};
    change(jobs[0]);
    render_on_cpu(images, jobs, params, 1);
  };
  EXPECT_NO_THROW(broken([](ViewJob&) {}));
  EXPECT_THROW(broken([](ViewJob& j) { j.offset = 1; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.offset = -1; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.height = 0; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.crop.left = 3; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.crop.top = -1; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.crop.width = 0; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.blur = true; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.order[0] = j.draw.order[1]; }), Error);
  EXPECT_THROW(broken([](ViewJob& j) { j.draw.order[0] = static_cast<JitterOp>(4); }), Error);
}

}  // namespace
}  // namespace simclr
