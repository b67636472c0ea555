// Whole views: against the reference, against torchvision's numbers, and independent of where the memory lies.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/augment/augment_ops.h"
#include "kernels/common/error.h"
#include "tests/augment/image_support.h"

namespace simclr {
namespace {

using namespace simclr::test;

constexpr PhiloxKey kKey = philox_key(42, RandomPurpose::kViews);

struct Expected {
  size_t index;
  double value;
};

void expect_values(const std::vector<float>& out, const std::vector<Expected>& expected) {
  for (const Expected& e : expected) EXPECT_NEAR(out.at(e.index), e.value, 2e-6) << "element " << e.index;
}

// torchvision 0.14.1 in float64 on the formula image: functional.crop, then resize([s, s], antialias=True).
TEST(Torchvision, ResizedCrop) {
  expect_values(render(formula_image(13, 11), {.crop = {2, 1, 10, 8}}, {.size = 4}),
                {{0, 0.58400815}, {7, 0.57830812}, {20, 0.37422969}, {35, 0.59969442}, {47, 0.39893048}});
  expect_values(
      render(formula_image(5, 4), {.crop = {1, 0, 3, 4}}, {.size = 6}),
      {{0, 0.14509804}, {7, 0.21519608}, {20, 0.42826797}, {35, 0.74117647}, {50, 0.67761438}, {107, 0.40392157}});
  expect_values(
      render(formula_image(5, 4), {.crop = {1, 0, 3, 4}, .flip = true}, {.size = 6}),
      {{0, 0.33333333}, {7, 0.35049020}, {20, 0.48643791}, {35, 0.43529412}, {50, 0.72924837}, {107, 0.09803922}});
}

// functional.adjust_brightness, _contrast, _saturation, _hue, rgb_to_grayscale, gaussian_blur on the 6x6 formula
// image.
TEST(Torchvision, OneStepAtATime) {
  const TestImage image = formula_image(6, 6);
  const CropBox all = whole(image);
  ViewParams params{.size = 6, .blur_probability = 1};
  const auto jitter = [&](ViewDraw draw) { return render(image, (draw.crop = all, draw.jitter = true, draw), params); };
  expect_values(jitter({.brightness = 1.4f}), {{7, 0.29098039}, {20, 0.89490196}, {50, 1.0}, {90, 0.13725490}});
  expect_values(jitter({.contrast = 0.6f}), {{0, 0.19461356}, {7, 0.31931944}, {50, 0.66755473}, {90, 0.25343708}});
  expect_values(jitter({.contrast = 1.4f}), {{0, 0.0}, {7, 0.09636684}, {50, 0.90891586}, {71, 0.87048448}});
  expect_values(jitter({.saturation = 0.6f}), {{0, 0.10866667}, {20, 0.70207796}, {50, 0.71777161}, {90, 0.29581161}});
  expect_values(jitter({.saturation = 1.4f}), {{0, 0.0}, {20, 0.57635341}, {50, 0.85869898}, {71, 0.83124690}});
  expect_values(jitter({.hue = 0.1f}), {{0, 0.06666667}, {20, 0.30196078}, {50, 0.78823529}, {90, 0.16313725}});
  expect_values(jitter({.hue = -0.4f}), {{0, 0.6}, {20, 0.97254902}, {50, 0.11764706}, {90, 0.70352941}});
  expect_values(render(image, {.crop = all, .grayscale = true}, params),
                {{0, 0.27166667}, {20, 0.79637137}, {90, 0.59247020}});
  expect_values(render(image, {.crop = all, .blur = true, .blur_sigma = 0.8f}, params),
                {{0, 0.09445418}, {7, 0.20784316}, {35, 0.24823333}, {90, 0.27202233}, {107, 0.64133544}});
  params.blur_taps = 5;
  expect_values(render(image, {.crop = all, .blur = true, .blur_sigma = 1.5f}, params),
                {{0, 0.19608559}, {7, 0.26359788}, {35, 0.43459229}, {90, 0.38383510}, {107, 0.66173747}});
}

// crop(2, 1, 10, 8), resize 6, hflip, hue -0.08, contrast 1.35, brightness 0.75, saturation 0.7, gaussian_blur(3, 1.1),
// normalize([.5, .4, .3], [.25, .2, .3]).
TEST(Torchvision, AWholeView) {
  const ViewParams params{
      .size = 6, .blur_probability = 1, .mean = {0.5f, 0.4f, 0.3f}, .inverse_std = {4, 5, 1 / 0.3f}};
  const ViewDraw draw{.crop = {2, 1, 10, 8},
                      .flip = true,
                      .jitter = true,
                      .blur = true,
                      .order = {JitterOp::kHue, JitterOp::kContrast, JitterOp::kBrightness, JitterOp::kSaturation},
                      .brightness = 0.75f,
                      .contrast = 1.35f,
                      .saturation = 0.7f,
                      .hue = -0.08f,
                      .blur_sigma = 1.1f};
  expect_values(render(formula_image(13, 11), draw, params), {{0, -0.69511897},
                                                              {7, -0.53587534},
                                                              {20, -0.35602745},
                                                              {35, -0.32351663},
                                                              {50, -0.25339878},
                                                              {71, -0.74458387},
                                                              {90, 0.21091566},
                                                              {107, 0.30235708}});
}

// Random decisions, sources of odd sizes. float against double; 1e-6 of the unit interval times 1/std (5).
TEST(RenderView, MatchesTheReference) {
  for (const auto& [height, width, size] :
       {std::tuple<int64_t, int64_t, int64_t>{32, 32, 32}, {41, 29, 31}, {96, 96, 33}, {1, 1, 8}, {5, 200, 16}}) {
    const ViewParams params = usual_views(size);
    std::vector<double> reference(3 * size * size);
    for (uint32_t sample = 0; sample < 60; ++sample) {
      const TestImage image = noise_image(height, width, sample);
      const ViewDraw draw = draw_view(params, kKey, {.view = 1, .sample = sample, .epoch = 3}, height, width);
      const std::vector<float> out = render(image, draw, params);
      render_view_ref(image.view(), draw, params, reference.data());
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], reference[i], 3e-5) << height << "x" << width << " sample " << sample;
    }
  }
}

TEST(RenderView, BitsDoNotDependOnWhereTheMemoryLies) {
  const TestImage image = noise_image(45, 37, 9);
  const ViewParams params = usual_views(31);
  for (uint32_t sample = 0; sample < 40; ++sample) {
    const ViewDraw draw = draw_view(params, kKey, {0, sample, 0}, 45, 37);
    const std::vector<float> expected = render(image, draw, params);
    for (size_t shift = 1; shift < 16; shift += 3) {
      TestImage moved = image;
      moved.pixels.insert(moved.pixels.begin(), shift, uint8_t{255});
      std::vector<float> out(expected.size() + shift),
          scratch(static_cast<size_t>(view_scratch_bytes(params, 45, 37)) / 4 + 4);
      const PlanarImage view{moved.pixels.data() + shift, 45, 37};
      render_view(view, draw, params, std::as_writable_bytes(std::span(scratch).subspan(shift % 4)),
                  out.data() + shift);
      ASSERT_EQ(std::memcmp(out.data() + shift, expected.data(), expected.size() * sizeof(float)), 0);
    }
  }
}

TEST(RenderWhole, ResizesAndNormalizes) {
  const TestImage image = constant_image(7, 50, 255, 51, 0);
  const ViewParams params{.size = 4, .crop_scale = {0.2, 0.3}, .mean = {0.5f, 0.2f, 0.25f}, .inverse_std = {2, 9, 4}};
  std::vector<float> out(3 * 16), scratch(static_cast<size_t>(view_scratch_bytes(params, 7, 50)) / 4);
  render_whole(image.view(), params, std::as_writable_bytes(std::span(scratch)), out.data());
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(out[i], 1, 1e-5);
    EXPECT_NEAR(out[16 + i], 0, 1e-5);
    EXPECT_NEAR(out[32 + i], -1, 1e-5);
  }
}

TEST(RenderWhole, ShowsTheCenterSquare) {
  EXPECT_EQ(center_square(7, 50), (CropBox{.top = 0, .left = 21, .height = 7, .width = 7}));
  EXPECT_EQ(center_square(10, 5), (CropBox{.top = 2, .left = 0, .height = 5, .width = 5}));
  EXPECT_EQ(center_square(4, 4), (CropBox{.top = 0, .left = 0, .height = 4, .width = 4}));
  const TestImage image = noise_image(8, 14, 2);
  const ViewParams params{.size = 4};
  std::vector<std::byte> scratch(view_scratch_bytes(params, 8, 14));
  std::vector<float> whole_out(48), crop_out(48);
  render_whole(image.view(), params, scratch, whole_out.data());
  render_view(image.view(), {.crop = {.top = 0, .left = 3, .height = 8, .width = 8}}, params, scratch, crop_out.data());
  EXPECT_EQ(whole_out, crop_out);
}

TEST(RenderView, RefusesTooLittleScratch) {
  const TestImage image = noise_image(8, 8, 1);
  const ViewParams params{.size = 8};
  std::vector<std::byte> scratch(static_cast<size_t>(view_scratch_bytes(params, 8, 8)) - 1);
  std::vector<float> out(3 * 64);
  EXPECT_THROW(render_view(image.view(), {.crop = whole(image)}, params, scratch, out.data()), Error);
}

}  // namespace
}  // namespace simclr
